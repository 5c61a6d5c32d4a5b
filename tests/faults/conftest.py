"""A tiny site, and a process that forks workers and commands over it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sites
from forks import Forks, forking

from synthmap.confidential.sample import write_sample


@pytest.fixture(scope="session")
def tiny_region(tmp_path_factory) -> Path:
    """The folder of a region of 60 workers, its spec and its confidential table."""
    folder = tmp_path_factory.mktemp("region")
    write_sample(folder, workers=60, zones=50, destinations=10, seed=1)
    return folder


@pytest.fixture(scope="session")
def forks(tiny_region) -> Iterator[Forks]:
    with forking(tiny_region) as found:
        yield found


@pytest.fixture
def place(tmp_path) -> Iterator[Path]:
    """A directory in memory where there is one: what is made durable hundreds of times would wait for the disk."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="synthmap-test-", dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def make_site(tiny_region, place) -> Iterator[Callable[..., sites.Site]]:
    """Set up a site with the tiny region registered; its spec lies in `spec.toml` of the site."""
    made = []

    def make(database: str = "", name: str = "site") -> sites.Site:
        site = place / name
        site.mkdir()
        text = (tiny_region / "spec.toml").read_text(encoding="utf-8")
        for file in ("zones.parquet", "od.parquet"):
            text = text.replace(f'"{file}"', f'"{tiny_region / file}"')
        run = f'\n[run]\npartitions = 2\nscratch = "{site / "scratch"}"\n'
        (site / "spec.toml").write_text(f'store = "{site / "store"}"\n{text}{run}', encoding="utf-8")
        made.append(sites.site(site, database or f"sqlite:///{site / 'catalog.sqlite'}"))
        made[-1].register(site / "spec.toml")
        return made[-1]

    yield make
    for one in made:
        one.stop()
