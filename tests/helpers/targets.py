"""Every reader of bytes from outside, as a function of bytes, with a sample to begin from; for fuzzing.

A target may raise what is in `synthmap.errors` and nothing else.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from uploads import SQUARE, kml, polygon, shapefile, written, zipped

from synthmap.errors import QueryError
from synthmap.geography.canonical import canonical

TOKENS = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b",", b";", b"\n", b"\r", b"-", b"1e999", b"NaN", b"-1",
    b"0x1", b"9223372036854775808",
    b"\xed\xa0\x80", b"\xe9", b"{", b"[", b"[[[[[[[[[[[[[[[[", b"((((((((", b" and not ",
    b"<!DOCTYPE a [<!ENTITY b 'bb'>]>", b"&b;", b"../", b"null", b"true", b"%00", b"PAR1", b"\x1f\x8b", b"PK\x03\x04",
    b"=" * 64, b"[datasets.x]",
)  # fmt: skip
Change = tuple[int, float, float, int]


def changed(data: bytes, changes: list[Change]) -> bytes:
    """Return `data` after changes (what, where, how much of it, with what): flipped, cut, doubled, moved, put in."""
    for kind, place, length, number in changes:
        at = int(place * len(data))
        end = min(len(data), at + 1 + int(length * length * 64))
        if kind == 0 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << number % 8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3:
            data = data[:end] + data[at:end] * (1 + number % 50) + data[end:]
        elif kind == 4:
            data = data[:at] + TOKENS[number % len(TOKENS)] + data[end if number & 64 else at :]
        else:
            data = data[:at] + number.to_bytes(8, "little")[: 1 + number % 8] + data[at + 1 + number % 8 :]
    return data


@dataclass(frozen=True)
class Target:
    """A reader: what to begin from, what reads it, and how many files take the time of one elsewhere."""

    seed: bytes
    read: Callable[[bytes], object]
    costs: int = 1


def zones():
    """Return three zones in two counties."""
    return canonical(
        ids=pa.array(["01", "02", "03"]), longitude=np.array([1.0, 1.1, 1.2]), latitude=np.array([50.0, 50.1, 50.2]),
        weight=np.array([5, 0, 9]), levels=("county",), parents=(pa.array(["a", "a", "b"]),), vintage="v",
    )  # fmt: skip


OD = pa.table({"o": ["01", "02", "elsewhere"], "d": ["01", "01", "03"], "n": [3, 2, 1]})
PLACES = pa.table({"id": ["01", "02", "03"], "lon": [1.0, 1.1, 1.2], "lat": [50.0, 50.1, 50.2], "w": [5, 0, 9],
                   "county": ["a", "a", "b"]})  # fmt: skip
GEOJSON = {"type": "FeatureCollection", "features": [
    {"type": "Feature", "properties": {"id": one, "w": 1, "county": "a"},
     "geometry": {"type": "Polygon", "coordinates": [[[x, 50], [x + 1, 50], [x + 1, 51], [x, 50]]]}}
    for one, x in (("01", 1), ("02", 3))]}  # fmt: skip
SPEC = b"""name = "x"
outside = "elsewhere"
tables = [{path = "t.csv", vintage = "v", format = "long", origin = "o", destination = "d"}]
[zones]
path = "z.csv"
vintage = "v"
levels = ["county"]
[privacy]
epsilon = 4.0
delta = 1e-6
[plan]
cells = 5
"""


def _csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pacsv.write_csv(table, out)
    return out.getvalue()


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="none", use_dictionary=False)  # so that values change, too
    return out.getvalue()


def _file(place: Path, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def target(data: bytes) -> object:
        path = place / name
        path.write_bytes(data)
        return read(path)

    return target


def _table(path: Path) -> object:
    from synthmap.confidential.table import read_table
    from synthmap.spec import TableSpec

    spec = TableSpec(path=path, vintage="v", format="long", origin="o", destination="d", count="n")
    return list(read_table(spec, zones(), segments=(), outside="elsewhere"))


def _zones(path: Path) -> object:
    from synthmap.geography.read import read_zones
    from synthmap.spec import ZonesSpec

    points = {} if path.suffix == ".geojson" else {"longitude": "lon", "latitude": "lat"}
    return read_zones(ZonesSpec(path=path, vintage="v", id="id", levels=["county"], weight="w", **points))


def _filter(language: str) -> Callable[[bytes], object]:
    from synthmap.published.features_parse import parse_filter

    return lambda data: parse_filter(data.decode(errors="replace"), language)


def _upload(data: bytes) -> object:
    from synthmap.published.areas.upload import read_upload

    return read_upload(data)


def _member(data: bytes, name: str, place: Path) -> object:
    """Read a zipped shapefile of which one member is `data`; the archive itself is whole."""
    files = {path.name: path.read_bytes() for path in sorted(place.glob("shape.*"))}
    return _upload(zipped(files | {name: data}))


def _tile(place: Path) -> Callable[[bytes], object]:
    """Ask a service for a tile of a release; only a refusal is an answer."""
    import structlog
    from starlette.testclient import TestClient

    from synthmap.service.app import create_app
    from synthmap.service.settings import service_settings

    (place / "store").mkdir()
    app = create_app(service_settings(store=place / "store", database=f"sqlite:///{place / 'catalog.sqlite'}"))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # a line a request says nothing here
    client = TestClient(app)

    def target(data: bytes) -> object:
        address = quote(data.decode(errors="replace"), safe="/?=&-.+")
        answer = client.get(f"/collections/none.flows/tiles/WebMercatorQuad/{address}")
        assert answer.status_code in (400, 404, 405, 406, 422, 429), (answer.status_code, address)
        raise QueryError(answer.text[:1000])

    return target


def _box(data: bytes) -> object:
    from synthmap.published.boxes import crs_code, make_box
    from synthmap.service.parameters import numbers

    text, _, crs = data.decode(errors="replace").partition(" ")
    return make_box(numbers(text, "bbox", (4, 6)), crs_code(crs))


def _cursor(data: bytes) -> object:
    from synthmap.published.cursors import read_cursor
    from synthmap.published.od import Query

    return read_cursor(data.decode(errors="replace"), "etag", Query())


def _secrets(data: bytes) -> object:
    from synthmap.service.credentials import sent_secrets

    head, _, query = data.partition(b"\n")
    return sent_secrets({"headers": [(b"authorization", head)], "query_string": query})


def _entry() -> bytes:
    from synthmap.catalog.account import Account
    from synthmap.catalog.entries import Kind

    return Account("x").next(Kind.BUDGET, budget={"epsilon": "1", "delta": "0"}).body.to_json().encode()


def _body(data: bytes) -> object:
    from synthmap.catalog.entries import read_body

    return read_body(data.decode(errors="replace"), "entry (1)")


def targets(place: Path) -> dict[str, Target]:
    """Return all targets by name; files they read are written to `place`."""
    from pipelines.registry import read_registry
    from pipelines.seal import Seal
    from synthmap.published.cursors import write_cursor
    from synthmap.published.od import Position, Query
    from synthmap.release.manifest import read_manifest
    from synthmap.spec import read_spec

    archive = shapefile(place, SQUARE)
    seal = json.dumps(
        {"key": "0" * 64, "heads": {"x": [1, "1" * 64]}, "tables": {"x": ["2" * 64]}, "files": {"3" * 64: "4" * 64}}
    ).encode()
    return {
        "od.csv": Target(_csv(OD), _file(place, "od.csv", _table)),
        "od.parquet": Target(_parquet(OD), _file(place, "od.parquet", _table)),
        "zones.csv": Target(_csv(PLACES), _file(place, "zones.csv", _zones)),
        "zones.parquet": Target(_parquet(PLACES), _file(place, "zones.parquet", _zones)),
        "zones.geojson": Target(json.dumps(GEOJSON).encode(), _file(place, "zones.geojson", _zones)),
        "spec.toml": Target(SPEC, _file(place, "spec.toml", read_spec)),
        "registry.toml": Target(b'[datasets."x"]\nspec = "s.toml"\n', _file(place, "registry.toml", read_registry)),
        "registry.toml.seal": Target(
            seal, _file(place, "r.toml.seal", lambda path: Seal(path.with_suffix("")).seen("x"))
        ),
        "manifest.json": Target(
            b'{"format": "synthmap-release-1", "release": "x", "files": {"a": {"sha256": "0", "bytes": 1}}}',
            _file(place, "manifest.json", lambda path: read_manifest(path.parent)),
        ),
        "ledger entry": Target(_entry(), _body),
        "upload.geojson": Target(json.dumps(GEOJSON).encode(), _upload),
        "upload.kml": Target(kml(polygon()), _upload),
        "upload.kmz": Target(zipped({"doc.kml": kml(polygon())}), _upload),
        "upload.gpkg": Target(written(place, "a.gpkg", SQUARE), _upload, 30),
        "upload.zip": Target(archive, _upload, 10),
        **{
            f"upload {name}": Target(
                (place / name).read_bytes(), lambda data, name=name: _member(data, name, place), 30
            )
            for name in ("shape.shp", "shape.dbf", "shape.prj")
        },
        "tile address": Target(b"12/1537/1210?f=mvt", _tile(place), 3),
        "filter text": Target(b"destination = '01' and (count > 5 or origin in ('02', '03'))", _filter("cql2-text")),
        "filter json": Target(
            b'{"op": "and", "args": [{"op": "=", "args": [{"property": "origin"}, "01"]}, true]}', _filter("cql2-json")
        ),
        "bbox": Target(b"1.0,50.0,2.0,51.0 http://www.opengis.net/def/crs/OGC/1.3/CRS84", _box),
        "cursor": Target(write_cursor(Position(3, "01", "02", 5), "etag", Query()).encode(), _cursor),
        "key": Target(b"Basic YTpzZWNyZXQ=\ntoken=secret&f=json", _secrets),
    }
