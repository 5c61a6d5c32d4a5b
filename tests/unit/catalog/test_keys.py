"""Keys: shown once, stored hashed, found by the whole secret only, revoked for good."""

import re

import pytest
from sqlalchemy import text

from synthmap.catalog.keys import Role, add_key, find_key, list_keys, revoke_key
from synthmap.errors import NotFoundError, QueryError


def test_a_secret_finds_its_key_and_is_nowhere_in_the_database(catalog):
    secret = add_key(catalog, "O'Brien & <é>", Role.CURATOR)
    assert re.fullmatch(r"smk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", secret)
    key = find_key(catalog, secret)
    assert (key.name, key.role, key.revoked) == ("O'Brien & <é>", Role.CURATOR, None)
    assert list_keys(catalog) == [key]
    with catalog.read() as session:
        stored = str(session.execute(text("select * from keys")).all())
    assert secret.split("_", 2)[2] not in stored


def test_secrets_differ_and_each_finds_its_own(catalog):
    secrets = [add_key(catalog, f"{i}", Role.READER) for i in range(20)]
    assert len({one.split("_", 2)[2] for one in secrets}) == 20
    assert [find_key(catalog, one).name for one in secrets] == [f"{i}" for i in range(20)]


def test_nothing_but_the_whole_secret_opens(catalog):
    first, second = (add_key(catalog, "x", Role.READER) for _ in range(2))
    mixed = first[:21] + second[21:]
    last = first[:-1] + ("A" if first[-1] != "A" else "B")
    wrong = [mixed, last, first[:-1], first + "x", first + "\n", first.upper(), first[4:], f" {first}", "", "smk_",
             "smk_" + "0" * 16 + "_" + "A" * 43, "\x00", "é" * 64, "\ud800", "' or 1=1 --",
             first.replace("_", "-")]  # fmt: skip
    assert [find_key(catalog, one) for one in wrong] == [None] * len(wrong)


def test_a_revoked_key_opens_nothing_and_is_still_listed(catalog):
    secret = add_key(catalog, "x", Role.ANALYST)
    id = find_key(catalog, secret).id
    revoked = revoke_key(catalog, id)
    assert find_key(catalog, secret) is None
    assert revoke_key(catalog, id) == revoked
    assert list_keys(catalog) == [revoked]
    assert revoked.revoked is not None


@pytest.mark.parametrize("id", ["", "0" * 16, "x", "\x00", "0" * 15 + "\n"])
def test_an_unknown_key_cannot_be_revoked(catalog, id):
    with pytest.raises(NotFoundError):
        revoke_key(catalog, id)


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "x" * 201])
def test_a_name_is_one_line(catalog, name):
    with pytest.raises(QueryError):
        add_key(catalog, name, Role.READER)
