"""A store with two releases, made once for all test processes, and clients of a service over it."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import browser
import geopandas
import live
import mappage
import numpy as np
import pandas as pd
import pytest
import shapely
from starlette.testclient import TestClient
from waiting import wait_for

from synthmap.catalog.database import open_catalog
from synthmap.catalog.keys import Role, add_key
from synthmap.service.app import create_app
from synthmap.service.settings import service_settings

ODD = ["01", "O'Brien", "Île de Ré", "東京", "<img src=x onerror=alert(1)>", 'say "hi", ok; é', "a/b?c=d&e#f", "001"]
"""Ids of the zones of the release ``odd``: polygons of 0.1 degrees in a row, in the parents ``west`` and ``east``."""
ODD_FLOWS = [("01", "01", 40), ("O'Brien", "01", 25), ("東京", "01", 10), ("Île de Ré", "001", 30),
             ("a/b?c=d&e#f", "<img src=x onerror=alert(1)>", 20), ("beyond", "001", 15)]  # fmt: skip
ODD_DRAWN = {"001": {"Île de Ré": 35, "elsewhere": 10},
             "01": {"01": 32, "O'Brien": 22, "東京": 17, "a/b?c=d&e#f": 3, "001": 1},
             "<img src=x onerror=alert(1)>": {"a/b?c=d&e#f": 19, "001": 1}}  # fmt: skip
"""What the release ``odd`` holds: tests know its rows, which are not to move with planner or kernels."""


@pytest.fixture(scope="session")
def store(tmp_path_factory, write_spec) -> Path:
    """A directory with the releases ``made-up-…`` (3,000 workers, 400 zones, SA segments) and ``odd-…`` (polygons)."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    made = root / "service-store"
    with (root / "service-store.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "done").exists():
            _make(made, write_spec)
            (made / "done").touch()
    return made / "releases"


def _make(made: Path, write_spec) -> None:
    from pipelines.release import release
    from synthmap.confidential.sample import write_sample
    from synthmap.spec import read_spec

    region = made / "region"
    write_sample(region, workers=3000, zones=400, destinations=60, seed=5)
    spec = read_spec(region / "spec.toml")
    run = spec.run.model_copy(update={"seed": 1, "scratch": made})
    usual = {"name": "made-up", "segments": "SA", "store": made / "releases", "run": run}
    release(spec.model_copy(update=usual), scheduler="threads")
    later = {"name": "later", "title": "A year later", "year": 2027, "segments": "SA", "store": made / "two"}
    again = run.model_copy(update={"seed": 3})
    release(spec.model_copy(update=later | {"run": again}), scheduler="threads")
    (first,) = (made / "releases").glob("made-up-*")
    shutil.copytree(first, made / "two" / first.name)
    odd = made / "odd"
    odd.mkdir()
    squares = [shapely.box(2 + 0.1 * i, 48, 2.1 + 0.1 * i, 48.1) for i in range(len(ODD))]
    side = ["west" if i < 4 else "east" for i in range(len(ODD))]
    frame = geopandas.GeoDataFrame(
        {"code": ODD, "side": side, "people": range(100, 100 + len(ODD))}, geometry=squares, crs=4326
    )
    frame.to_crs(3857).to_file(odd / "zones.gpkg", layer="zones")
    pd.DataFrame(ODD_FLOWS, columns=["home", "work", "n"]).to_parquet(odd / "od.parquet")
    path = write_spec(
        odd / "spec.toml",
        {
            "name": "odd",
            "title": "Odd ids <b>& polygons</b>",
            "store": made / "releases",
            "outside": "elsewhere",
            "zones": {"path": "zones.gpkg", "vintage": "2026", "id": "code", "levels": ["side"], "weight": "people"},
            "tables": [
                {
                    "path": "od.parquet",
                    "vintage": "2026",
                    "format": "long",
                    "origin": "home",
                    "destination": "work",
                    "count": "n",
                }
            ],
            "privacy": {"epsilon": 4.0, "delta": 1e-5},
            "run": {"seed": 2, "scratch": made},
        },
    )
    with patch("pipelines.synthesize.synthesize", _odd_draw):
        release(read_spec(path), scheduler="threads")


def _odd_draw(plan, counts, region, *_):
    from synthmap.mechanism.table import tally

    rank = {name: i for i, name in enumerate(region.names.to_pylist())}
    drawn = (ODD_DRAWN[region.names[int(one)].as_py()] for one in plan.destination)
    keys = [sorted(rank[home] for home, count in homes.items() for _ in range(count)) for homes in drawn]
    return tally(plan, np.concatenate(keys), 1)


@pytest.fixture(scope="session")
def two(store) -> Path:
    """A store with the made-up release and a later one of the same region, ``later-…``."""
    return store.parent / "two"


@pytest.fixture(scope="session")
def made_up(store) -> str:
    """The id of the made-up release."""
    return next(path.name for path in store.glob("made-up-*"))


@pytest.fixture(scope="session")
def odd(store) -> str:
    """The id of the release with odd ids."""
    return next(path.name for path in store.glob("odd-*"))


@pytest.fixture
def make_client(store, tmp_path) -> Iterator[Callable[..., TestClient]]:
    """Return a function that makes a client of a service over `store`; keywords change its settings."""
    clients = []

    def make(**changes) -> TestClient:
        usual = {"store": store, "database": f"sqlite:///{tmp_path / 'catalog.sqlite'}"}
        client = TestClient(create_app(service_settings(**(usual | changes))), raise_server_exceptions=False)
        clients.append(client.__enter__())
        return clients[-1]

    yield make
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(make_client) -> TestClient:
    """A client of a service with usual settings, once it is ready."""
    made = make_client()
    readiness = made.app.state.service.readiness
    wait_for(lambda: readiness.fault() is None)
    return made


@pytest.fixture(scope="session")
def live_server(store, tmp_path_factory) -> Iterator[str]:
    """The address of a service over `store` in a process of its own, pages of 50 features; for foreign clients."""
    database = tmp_path_factory.mktemp("live") / "catalog.sqlite"
    with live.serving(store, database, page_size=50, page_size_maximum=200) as address:
        yield address


@pytest.fixture(scope="session")
def live_keyed(store, tmp_path_factory) -> Iterator[tuple[str, str]]:
    """The address of a service that wants a key, and a reader's key."""
    database = tmp_path_factory.mktemp("keyed") / "catalog.sqlite"
    catalog = open_catalog(f"sqlite:///{database}")
    key = add_key(catalog, "test", Role.READER)
    catalog.close()
    with live.serving(store, database, anonymous=False, page_size=50) as address:
        yield address, key


@pytest.fixture(scope="session")
def proxied(store, tmp_path_factory) -> Iterator[live.Proxy]:
    """A proxy that remembers requests, in front of a service below the prefix /maps; pages of 50 features."""
    database = tmp_path_factory.mktemp("proxied") / "catalog.sqlite"
    settings = {"page_size": 50, "page_size_maximum": 200, "root_path": "/maps"}
    with (
        live.serving(store, database, **settings) as address,
        live.recording(address, "/maps", database.with_name("asked")) as proxy,
    ):
        yield proxy


@pytest.fixture(scope="session")
def live_two(two, tmp_path_factory) -> Iterator[str]:
    """The address of a service over the store of two releases of one region."""
    with live.serving(two, tmp_path_factory.mktemp("two") / "catalog.sqlite") as address:
        yield address


@pytest.fixture
def chrome_page(chrome, live_server) -> Iterator[Any]:
    """An empty page of a browser."""
    with browser.opened(chrome, live_server) as page:
        yield page


@pytest.fixture
def shown(chrome, live_server) -> Iterator[Callable[..., Any]]:
    """Open the map of a release with a view, and wait until what it loads is there."""
    with ExitStack() as stack:

        def show(release: str, /, *, options: dict[str, Any] | None = None, **view: object) -> Any:
            page = stack.enter_context(browser.opened(chrome, live_server, **(options or {})))
            page.goto(f"{live_server}/map#{urlencode({'release': release} | view)}")
            mappage.settle(page)
            return page

        yield show
