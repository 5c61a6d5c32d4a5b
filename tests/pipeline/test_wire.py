"""What goes between driver, scheduler and workers of a cluster holds nothing of a table but published headcounts."""

import shutil
from collections import Counter

import dask
import daskcluster
import numpy as np
import polars as pl
import pytest
import wire
from distributed import Client
from ports import free_port

from pipelines.release import release
from synthmap.errors import UnknownZoneError

MANY, MORE = 987_654, 123_457  # workers of two flows into one destination, of which only the sum is published
NOWHERE = "4711nowhere0815"
PLAIN = {"DASK_DISTRIBUTED__COMM__COMPRESSION": "None"}


@pytest.fixture
def tapped(tmp_path):
    """Return a wire and the address of a cluster of which every part reaches every other through it only."""
    with wire.wire() as tap:
        ports = [free_port() for _ in range(2)]
        scheduler = free_port()
        relays = [tap.relay(port) for port in ports]

        def options(number):
            return ("--no-nanny", "--listen-address", f"tcp://127.0.0.1:{ports[number]}",
                    "--contact-address", f"tcp://127.0.0.1:{relays[number]}")  # fmt: skip

        at = f"tcp://127.0.0.1:{tap.relay(scheduler)}"
        with (
            dask.config.set({"distributed.comm.compression": None}),
            daskcluster.cluster(
                tmp_path / "dask", 2, port=scheduler, at=at, options=options, environment=PLAIN
            ) as cluster,
        ):
            yield tap, at, cluster


@pytest.fixture
def two_tables(region, tmp_path, make_spec):
    """Return a spec over two tables, of which each holds some origins of every destination, and over further ones."""
    flows = pl.read_parquet(region / "od.parquet").select("origin", "destination", "count")
    flows = flows.with_columns(pl.col("origin", "destination").cast(pl.String))
    largest = flows.group_by("destination").len().sort("len")["destination"][-1]
    here = flows.filter(pl.col("destination") == largest)["origin"].to_list()
    secret = {(here[0], largest): MANY, (here[1], largest): MORE}
    changed = [secret.get((o, d), n) for o, d, n in flows.iter_rows()]
    flows = flows.with_columns(count=pl.Series(changed, dtype=pl.Int64))
    for number, part in enumerate(
        (flows.gather_every(3), pl.concat([flows.gather_every(3, 1), flows.gather_every(3, 2)]))
    ):
        part.write_csv(tmp_path / f"od-{number}.csv")

    def make(*more, **changes):
        table = make_spec().tables[0].model_dump(exclude_none=True)
        paths = [tmp_path / "od-0.csv", tmp_path / "od-1.csv", *more]
        return make_spec(
            segments=None, tables=[table | {"path": path} for path in paths], run={"partitions": 6}, **changes
        )

    return make


def windows(array, public, length=40):
    """Return pieces of an array's bytes that are telling: not of few values only, and in nothing that is public."""
    text = np.ascontiguousarray(array).tobytes()
    pieces = {text[start : start + length] for start in range(0, len(text) - length, length)}
    return {piece for piece in pieces if len(Counter(piece)) >= 7 and piece not in public}


@pytest.mark.parametrize("prior", [{}, {"lengths_epsilon": 0.3}], ids=["public decay", "measured lengths"])
def test_a_release_tells_the_scheduler_nothing_but_headcounts(tapped, two_tables, region, tmp_path, prior):
    tap, address, _ = tapped
    kept = tmp_path / "kept"

    def keep(stage, done, total):
        if (stage, done) == ("draw", 0):
            shutil.copytree(*(tmp_path / "scratch").glob("synthmap-scratch-*[!k]"), kept)

    found = release(two_tables(prior=prior), scheduler=address, progress=keep)
    stretches = [np.load(path) for path in kept.glob("table-*/headcount.npy")]
    public = sum(stretches)
    assert sum(counted.any() for counted in stretches) == 2  # of each table one stretch: CSV is read as a whole

    assert np.int64(public.max()).tobytes() in tap  # the relays hear what does go through
    assert b"tabulate" in tap
    assert b"synthmap-scratch-" in tap
    whole = public.tobytes()
    for number in (MANY, MORE):
        assert public.max() > number
        assert np.int64(number).tobytes() not in tap
        assert str(number).encode() not in tap
    ids = pl.read_parquet(region / "zones.parquet")["id"].to_list()
    assert [id for id in ids if id.encode() in tap] == []
    heard = b"|".join(tap.texts)
    looked_for = 0
    for path in kept.rglob("*.npy"):
        if path.parent.name.startswith(("table-", "partition-")):
            pieces = windows(np.load(path), whole)
            looked_for += len(pieces)
            assert [piece for piece in pieces if piece in heard] == [], path
    assert looked_for > 200
    drawn = [column for part in (found.path / "od").iterdir() for column in pl.read_parquet(part)["count"].to_numpy()]
    assert np.array(drawn[:8]).tobytes() not in tap


def test_why_a_table_is_refused_stays_between_workers_and_driver(tapped, two_tables, tmp_path):
    tap, address, cluster = tapped
    (tmp_path / "bad.csv").write_text(f"origin,destination,count\n{NOWHERE},{NOWHERE},{MANY}\n")
    with pytest.raises(UnknownZoneError, match="must be one of the zones"):
        release(two_tables(tmp_path / "bad.csv"), scheduler=address)
    assert b"ToldElsewhereError" in tap
    for secret in (NOWHERE, str(MANY), "UnknownZoneError", "must be one of the zones"):
        assert secret.encode() not in tap
        assert secret not in cluster.log


def test_the_relays_hear_results_and_errors(tapped):
    """Else the tests above could not fail."""
    tap, address, _ = tapped

    def fails():
        raise ValueError("told " + "aloud")

    with Client(address) as client:
        found = client.submit(lambda: np.arange(1000, 1100)).result()
        assert found[0] == 1000
        with pytest.raises(ValueError, match="told aloud"):
            client.submit(fails).result()
    assert np.arange(1010, 1020).tobytes() in tap
    assert b"told aloud" in tap
