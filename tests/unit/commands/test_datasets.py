"""`synthmap datasets` and the smallest runs of `synthmap worker`."""

import pytest

from synthmap.confidential.sample import write_sample


@pytest.fixture(scope="module")
def region(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets") / "region"
    write_sample(folder, workers=300, zones=60, destinations=10, seed=3)
    return folder


@pytest.fixture
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNTHMAP_CONFIDENTIAL_REGISTRY", str(tmp_path / "secret" / "registry.toml"))
    return tmp_path / "secret" / "registry.toml"


def test_a_dataset_is_registered_and_the_catalog_gets_public_facts_only(one_object, region, registry, tmp_path):
    added = one_object("datasets", "add", "ri-2019", region / "spec.toml")
    assert added.pop("registry") == str(registry)
    assert one_object("datasets", "list")["datasets"] == [added]
    assert added["levels"] == ["region", "state", "county", "tract", "blockgroup"]
    assert str(region / "spec.toml") in registry.read_text()
    catalog = (tmp_path / "releases" / ".catalog" / "catalog.sqlite").read_bytes()
    wal = tmp_path / "releases" / ".catalog" / "catalog.sqlite-wal"
    assert str(region).encode() not in catalog + (wal.read_bytes() if wal.exists() else b"")


def test_the_option_comes_before_the_environment(one_object, region, registry, tmp_path):
    one_object("datasets", "add", "x", region / "spec.toml", "--registry", tmp_path / "mine.toml")
    assert (tmp_path / "mine.toml").exists()
    assert not registry.exists()


def test_without_either_the_registry_lies_among_the_settings(one_object, region, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    added = one_object("datasets", "add", "x", region / "spec.toml")
    assert added["registry"] == str(tmp_path / "settings" / "synthmap" / "registry.toml")


def test_a_catalog_that_is_away_registers_nothing(one_line, region, registry):
    one_line("datasets", "add", "x", region / "spec.toml", "--database=postgresql://127.0.0.1:1/x")
    assert not registry.exists()


@pytest.mark.parametrize("words", [["X", "spec.toml"], ["x", "none.toml"], ["x"], ["a/b", "spec.toml"]])
def test_an_error_is_one_line(one_line, region, registry, words):
    one_line("datasets", "add", words[0], *(region / word for word in words[1:]))


def test_a_worker_without_jobs_ends_at_once(one_object, registry):
    assert one_object("worker", "--once") == {"successful": 0, "failed": 0, "dismissed": 0, "given_back": 0}


@pytest.mark.parametrize("name, value", [("LEASE_SECONDS", "0"), ("LEASE_SECONDS", "nan"), ("POLL_SECONDS", "often")])
def test_a_setting_that_breaks_a_rule_is_one_line(one_line, monkeypatch, name, value):
    monkeypatch.setenv(f"SYNTHMAP_CONFIDENTIAL_{name}", value)
    assert name.lower() in one_line("worker", "--once")
