import codecs
import os
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError
from specs import LEAST, reader

from synthmap.errors import ConfigurationError
from synthmap.mechanism.chosen import candidates, promised
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec, example_spec, read_spec

WEIGHTS = '[zones.weights]\npath = "weights.csv"\nid = "id"\ncolumn = "n"\nvintage = "v"\n'
LONG = 'format = "long"\norigin = "o"\ndestination = "d"\n'


read = pytest.fixture(reader)


def test_defaults(read):
    spec = read()
    assert (spec.duplicates, spec.outside, spec.segments, spec.segment_columns) == ("refuse", "refuse", None, ())
    assert (spec.privacy.rule, spec.privacy.max_jobs_per_worker) == ("pdp", 1)
    assert (spec.plan.coarsening, spec.plan.cells, spec.plan.keep) == (None, "auto", 1.0)
    assert spec.run.seed is None
    assert spec.tables[0].format == "lodes"
    assert spec.elsewhere_share == 0


def test_the_example_is_read():
    assert Spec.model_validate(tomllib.loads(example_spec())).zones.weights.column == "vap"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("colour = 1", "privacy.colour"),
        ("[plan]\nalpha = 1", "plan.alpha"),
        ("[prior]\nscale = 1", "prior.scale"),
        ("[run]\nworkers = 1", "run.workers"),
        (WEIGHTS + "layer = 'x'", "zones.weights.layer"),
        ("[colours]\nred = 1", "colours"),
    ],
)
def test_an_unknown_key_is_named(read, more, key):
    with pytest.raises(ConfigurationError, match=f"{key}: Extra inputs"):
        read(more)


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "../a", ".a", "-a", "a\\n", "é", "x" * 65])
def test_a_name_that_cannot_be_a_directory_is_refused(read, name):
    with pytest.raises(ConfigurationError, match="name"):
        read(name=f'name = "{name}"')


@pytest.mark.parametrize("value", ["0", "-1.0", "nan", "inf", "701", '"x"'])
def test_epsilon_has_a_range(read, value):
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon"):
        read(epsilon=f"epsilon = {value}")


@pytest.mark.parametrize("value", ["-1e-9", "1", "nan", "inf"])
def test_delta_has_a_range(read, value):
    with pytest.raises(ConfigurationError, match=r"privacy\.delta"):
        read(delta=f"delta = {value}")


@pytest.mark.parametrize(
    "line",
    [
        "[plan]\ncells = 0",
        "[plan]\ncells = 8000001",
        "[plan]\ncells = 1.5",
        '[plan]\ncells = "many"',
        "[plan]\nkeep = 0",
        "[plan]\nkeep = 1.1",
        "[plan]\nkeep = nan",
        '[plan]\nkeep = "posterior"',
        "[plan]\nkeep_floor = 0",
        '[plan]\ncoarsening = "none"',
        "[prior]\nscale_km = 0",
        "[prior]\nscale_km = inf",
        "[prior]\npower = -1",
        "[prior]\npower = nan",
        "[prior]\nelsewhere_share = 1",
        "[prior]\nelsewhere_share = nan",
        "[prior]\nstrength = 0",
        '[plan]\ncoarsening = "tracts"',
        '[plan]\nkeep = "often"',
        "[run]\npartitions = 0",
        "[run]\nseed = -1",
    ],
)
def test_numbers_have_ranges(read, line):
    section, key = line.split(" =")[0].replace("[", "").split("]\n")
    with pytest.raises(ConfigurationError, match=rf"{section}\.{key}"):
        read(line)


NO_DELTA = {
    "pure": ('rule = "pure"', None),
    "histogram": ('[plan]\nmechanism = "histogram"', None),
    "pure histogram": ('rule = "pure"\n[plan]\nmechanism = "histogram"\nkeep = "auto"', None),
    "pure, chosen": ('rule = "pure"\n[plan]\nmechanism = "auto"', None),
    "usual": ("", "privacy.delta must be given"),
    "adp": ('rule = "adp"', "privacy.delta must be given"),
    "chosen": ('[plan]\nmechanism = "auto"', "privacy.delta must be given"),
    "gaussian": ('[plan]\nmechanism = "histogram"\nnoise = "gaussian"', r"privacy.delta \(0\) must be 1e-11 or more"),
}


@pytest.mark.parametrize(("more", "told"), NO_DELTA.values(), ids=NO_DELTA)
def test_delta_is_needed_where_it_is_used(read, more, told):
    if told is None:
        assert promised(read(more, delta="")) == (Rule.PURE, 0.0)
    else:
        with pytest.raises(ConfigurationError, match=told):
            read(more, delta="")


IGNORED = {
    "another rule": ('rule = "pdp"\n[plan]\nmechanism = "histogram"', r"privacy.rule \(pdp\) must be left out or"),
    "dropping": ('[plan]\nmechanism = "histogram"\nkeep = 0.5', "keep must be left out"),
    "dropping by the prior": ('[plan]\nmechanism = "histogram"\nkeep = "prior"', "keep must be left out"),
    "a floor of nothing": ("[plan]\nkeep_floor = 0.4", "keep_floor is for"),
    "a reading of nothing": ('[plan]\nreading = "agreement"', "reading is for"),
    "noise of nothing": ('[plan]\nnoise = "gaussian"', "noise is for mechanism"),
    "noise of one of two": ('[plan]\nmechanism = "auto"\nnoise = "gaussian"', "noise is for mechanism"),
    "a rule that gaussian noise does not meet": (
        'rule = "pure"\n[plan]\nmechanism = "histogram"\nnoise = "gaussian"',
        r"privacy.rule \(pure\) must be \"adp\"",
    ),
}


@pytest.mark.parametrize(("more", "told"), IGNORED.values(), ids=IGNORED)
def test_what_the_mechanism_would_ignore_is_refused(read, more, told):
    with pytest.raises(ConfigurationError, match=told):
        read(more)


@pytest.mark.parametrize("rule", ["", 'rule = "adp"\n'])
def test_gaussian_noise_takes_delta_and_promises_approximate_privacy(read, rule):
    spec = read(f'{rule}[plan]\nmechanism = "histogram"\nnoise = "gaussian"', delta="delta = 1e-7")
    assert promised(spec) == (Rule.ADP, 1e-7)


def test_either_mechanism_takes_what_is_its_own(read):
    spec = read('rule = "adp"\n[plan]\nmechanism = "auto"\nkeep = 0.5\nreading = "agreement"')
    assert [one.plan.mechanism for one in candidates(spec)] == ["dirichlet", "histogram"]


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        ('release = "r"\nmixing = 0', "prior.mixing"),
        ('release = "r"\nmixing = 0.96', "prior.mixing"),
        ('release = "r"\nunknown = "drop"', "prior.unknown"),
        ("mixing = 0.5", "mixing and unknown are for prior.release"),
        ('unknown = "leave out"', "mixing and unknown are for prior.release"),
        (
            'release = "r"\n[prior.table]\npath = "t"\norigin = "o"\ndestination = "d"\nvintage = "v"',
            "exclude each other",
        ),
        ('[prior.table]\npath = "t"\norigin = "o"\ndestination = "d"', "prior.table.vintage"),
    ],
)
def test_a_public_table_in_the_prior_has_its_rules(read, prior, told):
    with pytest.raises(ConfigurationError, match=told):
        read(f"[prior]\n{prior}")


OF_ZONES = ["", "count", "geometry", "id", "in", "latitude", "level", "longitude", "out", "prior_share", "weight"]
OF_ZONES += ["out_error", "zone", "zones"]
OF_FLOWS = ["origin", "destination", "distance_km", "expected_error", "low", "high"]


@pytest.mark.parametrize("level", OF_ZONES)
def test_a_level_has_a_name_that_no_other_column_of_a_release_has(read, level):
    with pytest.raises(ConfigurationError, match="must have names of their own"):
        read(vintage=f'vintage = "v"\nlevels = ["{level}"]')


@pytest.mark.parametrize("segment", [*OF_ZONES, *OF_FLOWS, "county", "origin_county", "destination_county"])
def test_a_segment_has_a_name_that_no_other_column_of_a_release_has(read, segment):
    with pytest.raises(ConfigurationError, match=rf"segments \({segment}\) must have names of their own"):
        read(name=f'name = "x"\nsegments = ["young", "{segment}"]', path='path = "z.csv"\nlevels = ["county"]')


def test_a_segment_may_be_called_like_a_level_of_other_zones(read):
    assert read(name='name = "x"\nsegments = ["county", "workers"]').segment_columns == ("county", "workers")


@pytest.mark.parametrize("value", ["true", '"4"'])
def test_a_privacy_parameter_is_a_number_not_something_like_one(read, value):
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon"):
        read(epsilon=f"epsilon = {value}")


@pytest.mark.parametrize("line", ["max_jobs_per_worker = 0", "max_jobs_per_worker = 101", 'rule = "none"'])
def test_the_promise_has_ranges(read, line):
    with pytest.raises(ConfigurationError, match=rf"privacy\.{line.split()[0]}"):
        read(line)


@pytest.mark.parametrize("key", ["name", "path", "vintage", "epsilon"])
def test_required_keys(read, key):
    with pytest.raises(ConfigurationError, match="Field required"):
        read(**{key: ""})


def test_no_table_is_refused(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(
        LEAST.split("[[tables]]")[0].replace("[zones]", "tables = []\n[zones]") + "[privacy]\nepsilon = 1\n"
    )
    with pytest.raises(ConfigurationError, match="tables"):
        read_spec(path)


def test_all_faults_are_told_in_one_line(read):
    with pytest.raises(ConfigurationError) as caught:
        read("colour = 1", epsilon="epsilon = 0", delta="delta = 2")
    text = str(caught.value)
    assert "\n" not in text
    assert all(key in text for key in ("privacy.colour", "privacy.epsilon", "privacy.delta"))


def test_a_long_table_needs_its_columns(read):
    with pytest.raises(ConfigurationError, match="needs origin and destination"):
        read('[[tables]]\npath = "b"\nvintage = "v"\nformat = "long"')


def test_a_lodes_table_has_columns_of_its_own(read):
    with pytest.raises(ConfigurationError, match='are for format = "long"'):
        read('[[tables]]\npath = "b"\nvintage = "v"\norigin = "o"')


def test_a_long_table(read):
    table = read(f'[[tables]]\npath = "b"\nvintage = "v"\n{LONG}').tables[1]
    assert (table.origin, table.destination, table.count, table.separator) == ("o", "d", None, ",")


@pytest.mark.parametrize("separator", ["", ",,"])
def test_a_separator_is_one_character(read, separator):
    with pytest.raises(ConfigurationError, match="separator"):
        read(f'[[tables]]\npath = "b"\nvintage = "v"\nseparator = "{separator}"')


def test_weights_of_the_same_file(read):
    assert read(path='path = "zones.csv"\nweight = "people"').zones.weight == "people"


def test_weights_of_another_file(read, tmp_path):
    weights = read(WEIGHTS).zones.weights
    assert (weights.path, weights.id, weights.column, weights.vintage) == (tmp_path / "weights.csv", "id", "n", "v")


def test_both_weights_exclude_each_other(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(LEAST.replace("[zones]", '[zones]\nweight = "people"') + WEIGHTS)
    with pytest.raises(ConfigurationError, match="exclude each other"):
        read_spec(path)


def test_segment_families(read):
    assert read(name='name = "x"\nsegments = "SE"').segment_columns == ("SE01", "SE02", "SE03")
    assert read(name='name = "x"\nsegments = ["a", "b"]').segment_columns == ("a", "b")
    with pytest.raises(ConfigurationError, match="segments"):
        read(name='name = "x"\nsegments = "SX"')


@pytest.mark.parametrize("names", ['["a", "a"]', '["a", "count"]', '["origin"]', '["destination", "a"]', '["a", ""]'])
def test_segments_have_names_of_their_own(read, names):
    with pytest.raises(ConfigurationError, match="segments"):
        read(name=f'name = "x"\nsegments = {names}')


def test_elsewhere_gets_a_share_where_origins_may_lie_there(read):
    elsewhere = 'name = "x"\noutside = "elsewhere"'
    assert read(name=elsewhere).elsewhere_share == 0.1
    assert read("[prior]\nelsewhere_share = 0.0", name=elsewhere).elsewhere_share == 0.0
    assert read("[prior]\nelsewhere_share = 0.0").elsewhere_share == 0.0
    with pytest.raises(ConfigurationError, match="elsewhere"):
        read("[prior]\nelsewhere_share = 0.2")


def test_relative_paths_start_at_the_spec(read, tmp_path):
    spec = read(WEIGHTS, '[run]\nscratch = "s"')
    assert spec.zones.path == tmp_path / "zones.csv"
    assert spec.zones.weights.path == tmp_path / "weights.csv"
    assert spec.tables[0].path == tmp_path / "od.csv"
    assert spec.store == tmp_path / "releases"
    assert spec.run.scratch == tmp_path / "s"


def test_absolute_paths_stay(read, tmp_path):
    spec = read(path=f'path = "{tmp_path}/a/zones.csv"', name=f'name = "x"\nstore = "{tmp_path}/b"')
    assert spec.zones.path == tmp_path / "a" / "zones.csv"
    assert spec.store == tmp_path / "b"


@pytest.mark.parametrize("control", ["\\u0000", "\\n", "\\u001b", "\\u007f"])
@pytest.mark.parametrize("key", ["store", "zones", "tables", "weights", "scratch", "release"])
def test_paths_have_no_control_characters(read, key, control):
    """One with NUL was a traceback, after the tables had been read."""
    lines = {
        "store": {"name": f'name = "x"\nstore = "r{control}"'},
        "zones": {"path": f'path = "zones{control}.csv"'},
    }.get(key, {})
    more = {
        "tables": f'[[tables]]\npath = "od{control}.csv"\nvintage = "v"',
        "weights": WEIGHTS.replace("weights.csv", f"w{control}"),
        "scratch": f'[run]\nscratch = "s{control}"',
        "release": f'[prior]\nrelease = "out/r{control}"',
    }.get(key, "")
    with pytest.raises(ConfigurationError, match=r"path \('.*\\.*'\) must have no control characters"):
        read(more, **lines)


def test_so_do_those_of_the_prior(read, tmp_path):
    assert read('[prior]\nrelease = "out/r-1"').prior.release == tmp_path / "out" / "r-1"
    table = '[prior.table]\npath = "t.csv"\norigin = "o"\ndestination = "d"\nvintage = "v"'
    assert read(table).prior.table.path == tmp_path / "t.csv"


def test_paths_are_absolute_though_the_spec_is_named_relatively(tmp_path, monkeypatch):
    """Worker processes may run in another directory."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "spec.toml").write_text(LEAST)
    for here, name in ((tmp_path, "sub/spec.toml"), (tmp_path / "sub", "spec.toml")):
        monkeypatch.chdir(here)
        spec = read_spec(Path(name))
        assert spec.zones.path == tmp_path / "sub" / "zones.csv"
        assert spec.tables[0].path == tmp_path / "sub" / "od.csv"
        assert spec.store == tmp_path / "sub" / "releases"


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_bytes(codecs.BOM_UTF8 + LEAST.encode())
    assert read_spec(path).name == "x"


@pytest.mark.parametrize("content", [b"name = \xff", b"name = ", LEAST.encode("utf-16"), b"\0"])
def test_something_else_than_toml_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "spec.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="readable TOML file") as caught:
        read_spec(path)
    assert "\n" not in str(caught.value)


def test_a_missing_spec_says_how_to_get_one(tmp_path):
    with pytest.raises(ConfigurationError, match="spec --example"):
        read_spec(tmp_path / "none.toml")


@pytest.mark.parametrize("path", [os.devnull, "."])
def test_an_odd_spec_is_refused(path):
    with pytest.raises(ConfigurationError):
        read_spec(Path(path))


def test_a_spec_cannot_be_changed(read):
    with pytest.raises(ValidationError, match="frozen"):
        read().name = "y"
