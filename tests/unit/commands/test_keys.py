"""`synthmap keys`: the secret once, everything else as often as one likes."""

import pytest

from synthmap.catalog.database import open_catalog
from synthmap.catalog.keys import Role, find_key


def test_a_key_is_made_listed_and_revoked(one_object, tmp_path):
    made = one_object("keys", "add", "--name=O'Brien é", "--role=curator")
    assert (made["name"], made["role"]) == ("O'Brien é", "curator")
    (listed,) = one_object("keys", "list")["keys"]
    assert made["secret"] not in str(listed)
    assert (listed["id"], listed["name"], listed["role"], listed["revoked"]) == (
        made["id"],
        "O'Brien é",
        "curator",
        None,
    )
    catalog = open_catalog(f"sqlite:///{tmp_path / 'releases' / '.catalog' / 'catalog.sqlite'}")
    assert find_key(catalog, made["secret"]).role == Role.CURATOR
    assert one_object("keys", "revoke", made["id"]) == {"id": made["id"], "revoked": True}
    assert find_key(catalog, made["secret"]) is None
    catalog.close()
    assert one_object("keys", "list")["keys"][0]["revoked"]


def test_text_for_people(synthmap):
    code, out, err = synthmap("keys", "add", "--name=me", "--role=reader")
    assert (code, err) == (0, "")
    assert out.startswith("smk_")
    assert "me" in synthmap("keys", "list")[1]


def test_the_store_and_the_database_are_chosen_by_option_or_environment(one_object, tmp_path, monkeypatch, database):
    one_object("keys", "add", "--name=a", "--role=reader", "--database", database)
    monkeypatch.setenv("SYNTHMAP_SERVICE_DATABASE", database)
    assert [key["name"] for key in one_object("keys", "list")["keys"]] == ["a"]
    monkeypatch.delenv("SYNTHMAP_SERVICE_DATABASE")
    assert one_object("keys", "list", "--store", tmp_path / "other")["keys"] == []
    assert (tmp_path / "other" / ".catalog" / "catalog.sqlite").exists()


WRONG = {
    "no name": ["keys", "add", "--role=reader"],
    "an empty name": ["keys", "add", "--name=", "--role=reader"],
    "a name of two lines": ["keys", "add", "--name=a\nb", "--role=reader"],
    "an unknown role": ["keys", "add", "--name=a", "--role=king"],
    "an unknown key": ["keys", "revoke", "0000000000000000"],
    "a secret instead of an id": ["keys", "revoke", "smk_0000000000000000_x"],
    "another database": ["keys", "list", "--database=mysql://me:hush@there/x"],
    "a store that is a file": ["keys", "list", "--store=/etc/hostname"],
    "a server that is away": ["keys", "list", "--database=postgresql://me:hush@127.0.0.1:1/x"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_an_error_is_one_line(one_line, words):
    assert "hush" not in one_line(*words)
