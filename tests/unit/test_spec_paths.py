"""Files of a spec that are named for two purposes are refused before one is opened: none here exists."""

import pytest

from synthmap.errors import ConfigurationError
from synthmap.spec import read_spec

SPEC = """
name = "x"
[zones]
path = "{zones}"
vintage = "2010"
[privacy]
epsilon = 1.0
delta = 1e-6
{more}
"""
TABLE = """
[[tables]]
path = "{}"
vintage = "2010"
"""
WEIGHTS = """
[zones.weights]
path = "{}"
id = "h_geocode"
column = "S000"
vintage = "2010"
"""
SHAPES = """
[zones.shapes]
path = "{}"
id = "h_geocode"
vintage = "2010"
"""
PRIOR = """
[prior.table]
path = "{}"
origin = "h_geocode"
destination = "w_geocode"
vintage = "2010"
"""
RELEASE = """
[prior]
release = "{}"
"""


@pytest.fixture
def read(tmp_path):
    def read(*tables, zones="zones.csv", more=""):
        (tmp_path / "below").mkdir(exist_ok=True)
        (tmp_path / "link.csv").unlink(missing_ok=True)
        (tmp_path / "link.csv").symlink_to(tmp_path / "secret.csv")
        text = SPEC.format(zones=zones, more=more) + "".join(TABLE.format(table) for table in tables)
        (tmp_path / "spec.toml").write_text(text)
        return read_spec(tmp_path / "spec.toml")

    return read


SAME = ["secret.csv", "./secret.csv", "below/../secret.csv", "link.csv", "{absolute}"]


@pytest.mark.parametrize("name", SAME)
def test_a_table_is_named_once(read, tmp_path, name):
    name = name.format(absolute=tmp_path / "secret.csv")
    with pytest.raises(ConfigurationError, match=r"tables \(.*must name each file once; its jobs would be"):
        read("secret.csv", "other.csv", name)
    assert len(read("secret.csv", "other.csv").tables) == 2


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize(
    ("key", "more"),
    [("zones", ""), ("zones.weights", WEIGHTS), ("zones.shapes", SHAPES), ("prior.table", PRIOR)],
)
def test_and_for_nothing_public(read, tmp_path, key, more, name):
    name = name.format(absolute=tmp_path / "secret.csv")
    zones = name if key == "zones" else "zones.csv"
    with pytest.raises(ConfigurationError, match=rf"^{key} \(.*another file than the confidential table secret\.csv"):
        read("other.csv", "secret.csv", zones=zones, more=more.format(name))
    read("other.csv", zones=zones, more=more.format(name))


def test_nor_in_the_release_that_is_the_prior(read):
    with pytest.raises(ConfigurationError, match=r"^prior.release \(.*another file than .* table part\.csv"):
        read("releases/x/od/part.csv", more=RELEASE.format("releases/x"))
    read("releases/part.csv", more=RELEASE.format("releases/x"))


def test_in_an_object_store_too(read):
    with pytest.raises(ConfigurationError, match=r"tables \(s3://b/secret\.csv\) must name each file once"):
        read("s3://b/secret.csv", "s3://b/secret.csv")
    read("s3://b/secret.csv", "s3://c/secret.csv")
