"""What lies in the repository: a known top level, no machine's paths, no large or long files."""

import re
import shutil
import subprocess
import tomllib

import pytest

TOP = {
    "pyproject.toml",
    "README.md",
    "synthmap",
    "pipelines",
    "tests",
    "notebooks",
    "Dockerfile",
    "Makefile",
    "LICENSE",
    "CHANGELOG.md",
    "constraints.txt",
    ".ci",
    ".dockerignore",
    ".gitignore",
}
# written so that they do not match themselves
MACHINE = re.compile(rb"(?<![\w.-])/(work|root|home/\w+|Users/\w+|tmp/pytest)(/|\b)")
INDEX = re.compile(rb"pypi[.]org|pythonhosted[.]org|--(extra-)?index[-]url|https?://[^\s\"']+/simpl[e]\b")


@pytest.fixture(scope="module")
def files(repository):
    """Every committed file."""
    git = shutil.which("git")
    if git is None or not (repository / ".git").exists():
        pytest.skip("git or the repository's history is not there")
    done = subprocess.run([git, "ls-files", "-z"], cwd=repository, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("git does not list this repository")
    return [path for name in done.stdout.decode().split("\0")[:-1] if (path := repository / name).is_file()]


def named(paths, repository):
    return [path.relative_to(repository).as_posix() for path in paths]


def test_the_top_level_is_known(files, repository):
    top = {name.split("/")[0] for name in named(files, repository)}
    assert top - TOP == set()  # of dotfiles, too: make's stamps lie in the environment
    assert {"pyproject.toml", "README.md", "synthmap", "pipelines", "tests", "Dockerfile"} <= top


def test_no_file_names_a_path_of_a_machine(files, repository):
    assert named([path for path in files if MACHINE.search(path.read_bytes())], repository) == []


def test_no_file_names_a_package_index(files, repository):
    assert named([path for path in files if INDEX.search(path.read_bytes())], repository) == []


@pytest.mark.parametrize("text", ["see @work@main", "'@root@.cache'", "@home@me@x", "@Users@me@x", "(@work)"])
def test_a_path_of_a_machine_would_be_noticed(text):
    assert MACHINE.search(text.replace("@", "/").encode())


@pytest.mark.parametrize("text", ["framework@x", "a@work@b", "@data", "..@root@x", "home@work", "@worker@x"])
def test_other_paths_are_no_fault(text):
    assert not MACHINE.search(text.replace("@", "/").encode())


def test_a_package_index_would_be_noticed():
    for text in ("https://pypi" + ".org/x", "pip --index" + "-url=x", "http://host:1/sim" + "ple/"):
        assert INDEX.search(text.encode())


def test_every_extra_that_users_are_told_to_install_is_there(files, repository):
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = {
        name
        for path in files
        for words in re.findall(rb"synthmap\[([a-z,]+)\]", path.read_bytes())
        for name in words.decode().split(",")
    }
    assert {"metrics", "postgres", "service"} <= told <= set(extras)


def test_no_file_is_large(files, repository):
    assert named([path for path in files if path.stat().st_size > 300_000], repository) == []


def test_no_source_file_is_long(files, repository):
    source = [path for path in files if path.suffix == ".py"]
    assert named([path for path in source if path.read_bytes().count(b"\n") > 400], repository) == []


def test_no_test_folder_is_a_package(files, repository):
    """Tests are imported by path."""
    tests = [name for name in named(files, repository) if name.startswith("tests/")]
    assert [name for name in tests if name.endswith("__init__.py")] == []


def test_every_script_of_ci_runs(files):
    for path in files:
        if ".ci" in path.parts:
            assert path.stat().st_mode & 0o111, path
