"""Serving never holds what produces: in one process, and in the image that is built for it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PRODUCING = ("synthmap.confidential", "synthmap.mechanism", "synthmap.audit", "synthmap.kernels", "pipelines", "numba")
SECRETS = ("synthmap.confidential", "synthmap.mechanism", "synthmap.kernels", "synthmap.spec", "synthmap.cli")
READING = ("release.verify", "release.manifest", "release.store", "release.statement", "catalog.jobs",
           "published.store", "published.exports", "service.app", "service.serve", "service.__main__")  # fmt: skip

UNSEEN = {"__pycache__", "node_modules", "dist"}  # Docker does not see them: they are in .dockerignore

AWAY = """
import sys

class Away:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {0}:
            raise ModuleNotFoundError("No module named " + name, name=name)

sys.meta_path.insert(0, Away)
"""


def loaded(code, **environment):
    """Return the modules that a fresh interpreter has loaded after `code`."""
    code += "\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, **environment)
    return json.loads(done.stdout.splitlines()[-1])


def of(packages, modules):
    return [name for name in modules if name.startswith(tuple(f"{one}." for one in packages)) or name in packages]


@pytest.mark.parametrize("module", READING)
def test_reading_releases_loads_nothing_that_makes_them(module):
    assert of(PRODUCING, loaded(f"import synthmap.{module}")) == []


def test_nor_does_verifying_a_whole_store(small_release):
    store = str(small_release().parent)
    code = f"import runpy, sys\nsys.argv = ['x', {store!r}]\n"
    code += "try:\n    runpy.run_module('synthmap.release', None, '__main__')\n"
    modules = loaded(code + "except SystemExit as end:\n    assert end.code == 0")
    assert "synthmap.release.verify" in modules
    assert of(PRODUCING, modules) == []


EVERY_ROUTE = """
import sys
from starlette.testclient import TestClient
from synthmap.service.app import create_app
from synthmap.service.settings import service_settings

app = create_app(service_settings(store=sys.argv[1], database="sqlite:///" + sys.argv[2]))
asked = set()
with TestClient(app, raise_server_exceptions=False) as client:
    for release in client.get("/releases").json()["releases"]:
        for path in ("", "/od?limit=3", "/statement", "/metrics", "/downloads", "/downloads/flows.csv", "/analyses",
                     "/analyses/inflow-outflow?zone=01", "/analyses/origins?zone=01&f=png"):
            asked.add(client.get(f"/releases/{release['id']}{path}").status_code)
        for part in ("flows", "origins", "destinations"):
            for path in ("", "/items?limit=3", "/queryables", "/tiles/WebMercatorQuad/0/0/0"):
                asked.add(client.get(f"/collections/{release['id']}.{part}{path}").status_code)
    paths = ("/", "/api", "/conformance", "/collections", "/ledger", "/processes", "/jobs", "/metrics", "/readyz")
    for path in paths:
        asked.add(client.get(path).status_code)
assert 200 in asked and 404 not in asked, asked
"""


def test_nor_does_answering_requests(small_release, tmp_path):
    store = str(small_release().parent)
    modules = loaded(EVERY_ROUTE.replace("sys.argv[1]", repr(store)).replace("sys.argv[2]", repr(f"{tmp_path}/c")))
    assert of((*PRODUCING, *SECRETS), modules) == []


def test_the_service_refuses_to_see_the_worker_s_settings(tmp_path):
    line = [sys.executable, "-m", "synthmap.service", "--store", str(tmp_path), "--port", "0"]
    seen = os.environ | {"SYNTHMAP_CONFIDENTIAL_REGISTRY": "registry.toml"}
    done = subprocess.run(line, capture_output=True, text=True, env=seen, check=False)
    assert done.returncode == 2
    assert "SYNTHMAP_CONFIDENTIAL_" in done.stderr


def test_these_tests_would_notice():
    assert of(PRODUCING, loaded("import pipelines.release")) != []


def test_what_a_small_release_does_without_is_not_loaded_before_it():
    """Each takes as long to load as a small release to make, in every process of a run."""
    for module in ("pipelines.release", "pipelines.registry"):
        slow = ("scipy.stats", "alembic", "geopandas", "pyogrio", "pyproj", "shapely", "matplotlib")
        assert of(slow, loaded(f"import {module}")) == []


@pytest.fixture(scope="module")
def targets(repository):
    """Return the instructions of each stage of the Dockerfile, those of its bases first."""
    text = re.sub(r"\\\n", " ", (repository / "Dockerfile").read_text(encoding="utf-8"))
    stages, name = {}, ""
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name] = list(stages.get(base, []))
        elif word and not word.startswith("#"):
            stages[name].append((word, rest))
    return stages


def copied(target, repository):
    """Return the files of the repository that a target copies, with their places in the image below /app."""
    files = {}
    for word, rest in target:
        assert word != "ADD"
        if word == "COPY" and not rest.startswith("--from="):  # what another stage built is no file of ours
            *sources, goal = rest.split()
            for source in sources:
                assert not re.search(r"[*?\[]|^--|^/|\.\.", source), source
                path = repository / source
                assert path.exists(), source
                inner = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
                for one in inner:
                    if not UNSEEN & set(one.relative_to(repository).parts):
                        place = one.relative_to(path) if path.is_dir() else Path(path.name)
                        files[one.relative_to(repository).as_posix()] = Path(goal) / place
    return files


def installed(target):
    """Return what a target's pip installs by name."""
    (line,) = [rest for word, rest in target if word == "RUN" and "pip install" in rest]
    words = re.sub(r"--constraint \S+", "", line.partition("pip install")[2]).split()
    return [word.strip("'").partition("[")[0] for word in words]


def test_the_service_image_holds_nothing_that_makes_releases(targets, repository):
    files = copied(targets["service"], repository)
    assert "synthmap/release/verify.py" in files
    assert "synthmap/service/app.py" in files
    forbidden = ("synthmap/confidential/", "synthmap/mechanism/", "synthmap/kernels/", "pipelines/", "synthmap/cli.py")
    assert [name for name in files if name.startswith(forbidden)] == []
    assert [name for name in files if name.startswith(("tests/", "notebooks/", "."))] == []


def test_the_service_image_holds_all_that_it_needs(targets, repository, small_release, tmp_path):
    """Run it on its files alone, each other dependency of the project taken away."""
    app, away = tmp_path / "app", tmp_path / "away"
    for name, place in copied(targets["service"], repository).items():
        (app / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / name, app / place)
    away.mkdir()
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]} - set(installed(targets["service"]))
    assert "numba" in names
    (app / "sitecustomize.py").write_text(AWAY.format(sorted(names)))
    store = small_release().parent
    entry = next(json.loads(rest) for word, rest in targets["service"] if word == "ENTRYPOINT")
    assert entry == ["python", "-m", "synthmap.service"]
    environment = {"PYTHONPATH": str(app), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    code = EVERY_ROUTE.replace("sys.argv[1]", repr(str(store))).replace("sys.argv[2]", repr(f"{tmp_path}/c"))
    code = "import synthmap.service.__main__\n" + code
    modules = loaded(code + f"from synthmap.release import verify\nassert verify.__file__.startswith({str(app)!r})",
                     cwd=away, env=environment)  # fmt: skip
    assert "synthmap.service.app" in modules


def test_the_pipeline_image_holds_the_whole_program(targets, repository):
    files = copied(targets["pipeline"], repository)
    program = [path for folder in ("synthmap", "pipelines") for path in (repository / folder).rglob("*.py")]
    assert {path.relative_to(repository).as_posix() for path in program} <= set(files)
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["readme"], *project["license-files"], "constraints.txt"} <= set(files)


def test_images_hold_nothing_that_a_build_left_behind(targets, repository):
    unseen = (repository / ".dockerignore").read_text(encoding="utf-8").split()
    assert {f"**/{name}" for name in UNSEEN} <= set(unseen)
    assert ("COPY", "--from=page /app/web/dist synthmap/service/web/dist") in targets["service"]
    assert [rest for word, rest in targets["page"] if word == "RUN" and "web/build.py" in rest]


@pytest.mark.parametrize("target", ["service", "pipeline"])
def test_no_image_runs_as_root(targets, target):
    users = [rest for word, rest in targets[target] if word == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    last = max(i for i, (word, _) in enumerate(targets[target]) if word in ("USER", "ENTRYPOINT"))
    assert all(word not in ("RUN", "COPY") for word, _ in targets[target][last:])


def test_hadolint_has_nothing_to_say(repository):
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, "Dockerfile"], cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
