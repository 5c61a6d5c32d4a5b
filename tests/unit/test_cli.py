"""The command line: one JSON object on stdout, progress on stderr, one line and exit code 2 for a user's error."""

import json
import shutil
import subprocess
import sys
import tomllib

import pytest

from synthmap import __version__
from synthmap.release import wording
from synthmap.release.manifest import PriorSource
from synthmap.release.verify import verify
from synthmap.spec import Spec

CALIBRATE = {"headcount": 1000, "cells": 250, "epsilon": 4, "delta": 1e-5}
ICDE = {"headcount": 1_000_000, "cells": 10_000, "ratio": 5, "delta": 1e-6, "epsilon": None}


def calibrate(**changes):
    """The words of `synthmap calibrate`; None leaves an option out."""
    options = {key: value for key, value in (CALIBRATE | changes).items() if value is not None}
    return ["calibrate", *(f"--{key.replace('_', '-')}={value}" for key, value in options.items())]


class TestCalibrate:
    def test_the_anchor(self, one_object):
        found = one_object(*calibrate())
        assert found["j"] == 24
        assert found["alpha"] * 53.6 == pytest.approx(24, abs=0.1)
        assert found["certified_delta"] <= 1e-5
        assert found["epsilon_total"] == 4
        assert found["certified"] is True

    def test_a_ratio_instead_of_epsilon(self, one_object):
        found = one_object(*calibrate(**ICDE))
        assert found["j"] <= 68
        assert found["alpha"] == pytest.approx(17.0, abs=0.01)
        assert found["epsilon_total"] == pytest.approx(1.6094379124)

    def test_adp_takes_half_the_noise(self, one_object):
        found = one_object(*calibrate(**ICDE, rule="adp"))
        assert found["j"] <= 34
        assert found["rule"] == "adp"

    def test_pure_is_free_of_delta(self, one_object):
        found = one_object(*calibrate(**ICDE, rule="pure"))
        assert (found["certified_delta"], found["j"]) == (0, 1_000_000)

    def test_the_rule_of_icde_2008_comes_with_what_it_is_worth(self, one_object):
        found = one_object(*calibrate(**ICDE, rule="reference-zero-sample"))
        assert found["alpha"] == pytest.approx(17.49, abs=0.005)
        assert found["certified"] is True
        lone = {"headcount": 1, "cells": 2, "epsilon": 8.889, "delta": 5.52e-4}
        found = one_object(*calibrate(**lone, rule="reference-zero-sample"))
        assert found["alpha"] < 1e-4
        assert found["certified"] is False
        assert found["certified_delta"] > 0.9

    def test_dropping_takes_its_part(self, one_object):
        found = one_object(*calibrate(keep=0.9))
        assert found["epsilon_dropping"] > 0
        assert found["epsilon_dropping"] + found["epsilon_resampling"] == pytest.approx(4)

    def test_more_synthetic_workers_need_more_noise(self, one_object):
        assert one_object(*calibrate(synthetic_size=2000))["alpha"] > one_object(*calibrate())["alpha"]

    def test_text_for_people(self, synthmap):
        code, out, err = synthmap(*calibrate())
        assert (code, err) == (0, "")
        assert "certified_delta" in out


ERRORS = {
    "epsilon 0": calibrate(epsilon=0),
    "epsilon below 0": calibrate(epsilon=-1),
    "epsilon nan": calibrate(epsilon="nan"),
    "epsilon inf": calibrate(epsilon="inf"),
    "epsilon text": calibrate(epsilon="four"),
    "delta nan": calibrate(delta="nan"),
    "delta 1": calibrate(delta=1),
    "delta below 0": calibrate(delta=-1e-9),
    "keep 0": calibrate(keep=0),
    "keep nan": calibrate(keep="nan"),
    "keep above 1": calibrate(keep=1.5),
    "keep costs more than epsilon": calibrate(keep=1e-9, epsilon=0.1),
    "keep and reference": calibrate(keep=0.5, rule="reference-zero-sample"),
    "epsilon and ratio": calibrate(ratio=5),
    "neither epsilon nor ratio": calibrate(epsilon=None),
    "ratio 1": calibrate(epsilon=None, ratio=1),
    "ratio nan": calibrate(epsilon=None, ratio="nan"),
    "ratio huge": calibrate(epsilon=None, ratio="1e308"),
    "headcount 0": calibrate(headcount=0),
    "headcount text": calibrate(headcount="many"),
    "no headcount": calibrate(headcount=None),
    "cells 0": calibrate(cells=0),
    "size 0": calibrate(synthetic_size=0),
    "reference, delta 0": calibrate(delta=0, rule="reference-zero-sample"),
    "rule unknown": calibrate(rule="none"),
    "option unknown": [*calibrate(), "--colour=red"],
    "spec": ["spec"],
    "spec of both": ["spec", "--example", "--schema"],
    "plan of nothing": ["plan", "nothing.toml"],
    "plan without spec": ["plan"],
    "release of nothing": ["release", "nothing.toml"],
    "release of a directory": ["release", "."],
    "verify nothing": ["verify", "nothing"],
    "verify without release": ["verify"],
    "sample of nobody": ["sample", "new", "--workers=0"],
    "sample of too many": ["sample", "new", "--zones=10", "--destinations=20"],
    "demo of nobody": ["demo", "--directory=new", "--workers=0"],
    "command unknown": ["publish"],
}


def assert_one_line(code, out, err):
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1, err
    assert err.startswith("synthmap: ")
    assert (code, out) == (2, "")


@pytest.mark.parametrize("words", ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_and_exit_code_2(synthmap, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert_one_line(*synthmap(*words))
    assert_one_line(*synthmap(*words, *(["--json"] if words[0] != "spec" and words != ["publish"] else [])))


@pytest.mark.parametrize("rule", ["pdp", "reference-zero-sample"])
@pytest.mark.parametrize("name", ["headcount", "cells", "synthetic_size"])
def test_a_number_too_large_to_compute_with_is_refused_at_once(command, name, rule):
    done = command(*calibrate(**{name: 10**20}, rule=rule))
    assert_one_line(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def region(tmp_path_factory, command):
    """A region written by `synthmap sample`, and what that printed."""
    folder = tmp_path_factory.mktemp("cli") / "region"
    done = command("sample", folder, "--workers=500", "--zones=100", "--destinations=20", "--seed=2", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.fixture
def spec(region, tmp_path):
    """A copy of the region's spec that keeps scratch and store to itself."""
    shutil.copytree(region[0], tmp_path / "region")
    path = tmp_path / "region" / "spec.toml"
    path.write_text(path.read_text() + '\n[run]\nscratch = "scratch"\n')
    return path


BROKEN_SPECS = {
    "not TOML": lambda text: text + "\nname =",
    "not UTF-8": lambda text: text.encode("utf-16"),
    "unknown key": lambda text: text.replace("epsilon", "epsilom"),
    "unknown section": lambda text: text + "\n[colours]\nred = 1\n",
    "several faults": lambda text: text.replace("epsilon = 4.0", "epsilon = 0").replace("1e-6", "nan"),
    "missing zones": lambda text: text.replace('"zones.parquet"', '"nowhere.parquet"'),
    "missing table": lambda text: text.replace('"od.parquet"', '"nowhere.parquet"'),
    "unknown column": lambda text: text.replace('"count"', '"n"'),
    "other vintage": lambda text: text.replace('"demo-1"', '"demo-2"', 1),
    "unknown level": lambda text: text.replace('"tract"', '"parish"'),
    "scratch is a file": lambda text: text.replace('"scratch"', '"spec.toml"'),
}


@pytest.mark.parametrize("name", ["plan", "release"])
@pytest.mark.parametrize("broken", BROKEN_SPECS.values(), ids=BROKEN_SPECS)
def test_a_broken_spec_is_one_line_and_exit_code_2(synthmap, spec, name, broken):
    text = broken(spec.read_text())
    spec.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_one_line(*synthmap(name, spec, "--scheduler=threads", "--json"))


@pytest.mark.parametrize("scheduler", ["bogus", "", "bogus://127.0.0.1:1", "tcp://127.0.0.1:1"])
def test_an_unusable_scheduler_is_one_line_and_exit_code_2(synthmap, spec, scheduler):
    assert_one_line(*synthmap("release", spec, f"--scheduler={scheduler}", "--json"))


def test_sample_says_what_it_wrote(region):
    folder, printed = region
    assert printed["directory"] == str(folder)
    assert (printed["workers"], printed["zones"], printed["destinations"]) == (500, 100, 20)
    assert {path.name for path in folder.iterdir()} == {"zones.parquet", "od.parquet", "spec.toml"}


def test_a_sample_is_never_overwritten(synthmap, region):
    assert_one_line(*synthmap("sample", region[0]))


def test_release_and_verify_print_one_object(command, spec):
    done = command("release", spec, "--scheduler=threads", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"release", "path", "epsilon", "delta", "workers", "destinations", "seconds"} <= set(found)
    assert (found["epsilon"], found["delta"], found["workers"], found["destinations"]) == (4, 1e-6, 500, 20)
    checked = json.loads(command("verify", found["path"], "--json").stdout)
    assert checked["verified"] is True
    assert (checked["release"], checked["workers"]) == (found["release"], 500)


def test_a_release_is_verified_from_any_directory(synthmap, small_release, monkeypatch):
    directory = small_release()
    monkeypatch.chdir(directory)
    assert synthmap("verify", ".")[0] == 0
    monkeypatch.chdir(directory.parent)
    assert synthmap("verify", f"{directory.name}/")[0] == 0


def test_a_seeded_release_does_not_look_private(synthmap, spec):
    spec.write_text(spec.read_text() + "seed = 1\n")
    seeded = "drawn with a fixed seed, for tests and demonstrations; anyone who knows the seed can undo it"
    code, out, _ = synthmap("release", spec, "--scheduler=threads")
    assert code == 0
    _, line, path = out.splitlines()
    assert line == f"NOT PRIVATE: {seeded}"
    code, out, _ = synthmap("verify", path)
    assert (code, out.splitlines()[1:]) == (0, [f"NOT PRIVATE: {seeded}"])
    found = json.loads(synthmap("verify", path, "--json")[1])
    assert (found["private"], found["warning"]) == (False, seeded)
    found = json.loads(synthmap("release", spec, "--scheduler=threads", "--json")[1])
    assert (found["private"], found["warning"]) == (False, seeded)


def test_a_private_release_on_a_prior_that_is_not_is_told_as_such(synthmap, small_release):
    source = {"kind": "release", "name": "x", "sha256": "0", "vintage": "1", "private": False, "mixing": 0.9,
              "workers": 9, "statement": "seeded"}  # fmt: skip

    def change(manifest):
        of = PriorSource(**source)
        manifest["prior"] |= {"source": source, "formula": wording.formula(False, of)}
        manifest["privacy"]["assumptions"] = wording.assumptions(1, of, None)
        manifest["warning"] = wording.warning(True, of)

    told = ["warning: its prior is the release x, which is not private itself"]
    assert synthmap("verify", small_release(change=change))[1].splitlines()[1:] == told
    assert len(synthmap("verify", small_release(name="usual"))[1].splitlines()) == 1


def test_plan_prints_the_promise_by_class(synthmap, spec):
    code, out, _ = synthmap("plan", spec, "--scheduler=threads", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["epsilon"], found["delta"], found["workers"], found["destinations"]) == (4, 1e-6, 500, 20)
    assert sum(part["workers"] for part in found["plan"]["classes"]) == 500
    code, out, _ = synthmap("plan", spec, "--scheduler=threads")
    assert code == 0
    assert out.startswith("ε = 4, δ = 1e-06 for 500 workers at 20 destinations\n")


def test_plan_tells_that_lengths_are_measured_by_a_release_only(synthmap, spec):
    usual = spec.read_text()
    assert json.loads(synthmap("plan", spec, "--scheduler=threads", "--json")[1])["lengths_epsilon"] == 4 / 10
    spec.write_text(usual + "\n[prior]\nlengths_epsilon = 0\n")
    _, without, _ = synthmap("plan", spec, "--scheduler=threads")
    assert "measure" not in without
    assert json.loads(synthmap("plan", spec, "--scheduler=threads", "--json")[1])["lengths_epsilon"] == 0
    spec.write_text(usual + "\n[prior]\nlengths_epsilon = 0.5\n")
    code, out, _ = synthmap("plan", spec, "--scheduler=threads")
    assert code == 0
    assert out.startswith("ε = 4, δ = 1e-06 for 500 workers at 20 destinations\n")
    line = out.splitlines()[-1]
    assert line.startswith("a release first measures mean commutes, with ε = 0.5 of this for each job")
    assert line.endswith("nothing was measured now")
    found = json.loads(synthmap("plan", spec, "--scheduler=threads", "--json")[1])
    assert found["lengths_epsilon"] == 0.5
    assert 3.5 < found["certified_epsilon_per_job"] <= 4


def test_a_release_that_measured_lengths_states_it_and_is_whole(synthmap, spec):
    spec.write_text(spec.read_text() + "\n[prior]\nlengths_epsilon = 0.5\n")
    code, out, _ = synthmap("release", spec, "--scheduler=threads", "--json")
    assert code == 0
    path = json.loads(out)["path"]
    assert synthmap("verify", path)[0] == 0
    assert "That took ε = 0.5 of the ε above" in synthmap("statement", path)[1]


def test_demo_releases_verifies_and_prints_the_promise(command, tmp_path):
    done = command("demo", "--directory", tmp_path / "demo", "--workers", 2000)
    assert done.returncode == 0, done.stderr
    assert "ε = 4, δ = 1e-06" in done.stdout
    (found,) = (tmp_path / "demo" / "releases").iterdir()
    assert verify(found).workers == 2000
    again = command("demo", "--directory", tmp_path / "demo", "--workers", 2000, "--json")
    assert json.loads(again.stdout)["workers"] == 2000


TAMPERED = {
    "a byte flipped": lambda at: flip(at / "od" / "part-00000.parquet"),
    "an extra file": lambda at: (at / "extra").touch(),
    "a missing file": lambda at: (at / "zones.parquet").unlink(),
    "no manifest": lambda at: (at / "manifest.json").unlink(),
    "manifest edited": lambda at: edit(at / "manifest.json", '"workers": 9', '"workers": 8'),
    "manifest with another key": lambda at: edit(at / "manifest.json", "{", '{"mood": "good", '),
    "promise edited": lambda at: edit(at / "manifest.json", '"epsilon": 4.0', '"epsilon": 0.5'),
    "renamed": lambda at: at.rename(at.with_name("renamed")),
    "a file": lambda at: (shutil.rmtree(at), at.touch()),
}


def flip(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_release_is_one_line_and_exit_code_2(synthmap, small_release, tamper):
    directory = small_release()
    assert synthmap("verify", directory)[0] == 0
    tamper(directory)
    renamed = directory.with_name("renamed")
    assert_one_line(*synthmap("verify", renamed if renamed.exists() else directory, "--json"))


def test_the_example_is_a_spec(synthmap):
    code, out, err = synthmap("spec", "--example")
    assert (code, err) == (0, "")
    assert Spec.model_validate(tomllib.loads(out)).name == "rhode-island-2019"
    assert out.count("#") > 20


def test_every_key_of_the_schema_is_in_the_example(synthmap):
    schema = json.loads(synthmap("spec", "--schema")[1])
    example = synthmap("spec", "--example")[1]
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {})}
    assert {key for key in keys if f"{key} = " not in example and f"{key}]" not in example} <= {"layer"}


def test_version(synthmap):
    assert synthmap("--version") == (0, f"synthmap {__version__}\n", "")


def test_help_needs_nothing_heavy():
    heavy = ["numba", "numpy", "pandas", "polars", "pyarrow", "dask", "distributed", "geopandas", "scipy", "pydantic"]
    code = (
        "import sys\nfrom synthmap.cli import main\nsys.argv = ['synthmap', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({heavy}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "release" in done.stdout
