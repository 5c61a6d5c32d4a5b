"""The registry: where specs lie, known to producing programs only."""

import stat
import subprocess
import sys
import tomllib

import pytest

from pipelines.registry import read_registry, register, registered_spec
from synthmap.catalog.datasets import Dataset
from synthmap.errors import ConfigurationError, GeographyError, NotFoundError, UnwritableError


@pytest.fixture
def spec_path(make_spec, tmp_path):
    """Write a spec of the region; return its path."""

    def make(name="spec.toml", **changes):
        make_spec(**changes)
        path = tmp_path / name
        (tmp_path / "spec.toml").rename(path)
        return path

    return make


@pytest.fixture
def registry(tmp_path):
    return tmp_path / "settings" / "registry.toml"


def test_what_is_registered_is_found_again(spec_path, registry, region):
    path = spec_path('it\'s "odd" \\ é 東京.toml', title="A <b>title</b>")
    levels = ("region", "state", "county", "tract", "blockgroup")
    facts = Dataset("a.b-1", "A <b>title</b>", ("SA01", "SA02", "SA03"), levels, "demo-1")
    assert register(registry, "a.b-1", path) == facts
    assert registered_spec(registry, "a.b-1").tables[0].path == region / "od.parquet"
    assert stat.S_IMODE(registry.stat().st_mode) == 0o600
    assert tomllib.loads(registry.read_text())["datasets"] == {"a.b-1": {"spec": str(path)}}


def test_a_spec_may_be_registered_again_and_an_id_belongs_to_one_spec(spec_path, registry):
    one, two = spec_path("one.toml"), spec_path("two.toml", segments=None)
    register(registry, "x", one)
    register(registry, "y", two)
    assert register(registry, "x", one).title == "x"
    with pytest.raises(ConfigurationError, match="must not belong to another spec"):
        register(registry, "x", two)
    assert read_registry(registry) == {"x": one, "y": two}


def test_relative_paths_are_those_of_where_it_was_registered(spec_path, registry, monkeypatch, tmp_path):
    path = spec_path()
    monkeypatch.chdir(tmp_path)
    register(registry, "x", path.relative_to(tmp_path))
    monkeypatch.chdir("/")
    assert registered_spec(registry, "x").name == "demo"


@pytest.mark.parametrize("id", ["", "A", ".x", "a/b", "a b", "x\n", "x" * 65, "é"])
def test_an_id_can_begin_that_of_a_release(spec_path, registry, id):
    with pytest.raises(ConfigurationError, match="must match"):
        register(registry, id, spec_path())
    assert not registry.exists()


def test_a_broken_spec_or_geography_is_not_registered(spec_path, registry, tmp_path):
    with pytest.raises(ConfigurationError, match="must be a file"):
        register(registry, "x", tmp_path / "none.toml")
    with pytest.raises(GeographyError):
        register(registry, "x", spec_path(zones={"id": "nothing"}))
    assert not registry.exists()


@pytest.mark.parametrize(
    "text",
    ["datasets = 1", "[datasets]\nx = 1", '[datasets."x"]\nplace = "y"', '[datasets."x"]\nspec = 1', "\x00", "["],
)
def test_a_file_that_is_no_registry_is_one_clear_error(registry, text):
    registry.parent.mkdir()
    registry.write_text(text)
    with pytest.raises(ConfigurationError, match="must be a TOML file of sections"):
        read_registry(registry)


def test_an_unknown_dataset_is_not_found(registry):
    with pytest.raises(NotFoundError, match="synthmap datasets add"):
        registered_spec(registry, "x")


def test_a_place_that_cannot_be_written_is_one_clear_error(spec_path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableError, match="writable"):
        register(tmp_path / "file" / "registry.toml", "x", spec_path())


ADD = """
import sys
from pathlib import Path
from pipelines.registry import register
register(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
"""


def test_two_that_register_at_once_lose_nothing(spec_path, registry):
    path = spec_path()
    both = [subprocess.Popen([sys.executable, "-c", ADD, registry, id, path]) for id in ("x", "y")]
    assert [one.wait(120) for one in both] == [0, 0]
    assert read_registry(registry) == {"x": path, "y": path}
