"""`synthmap audit`: what it prints, and that it fails when a promise is broken or the audit is blind."""

import functools
import json
import sys

import pytest

from synthmap import cli
from synthmap.audit import broken, chosen
from synthmap.audit.attacks import chosen as literature
from synthmap.audit.attacks.tables import unprotected
from synthmap.audit.chosen import Attack
from synthmap.audit.exact import audit_exactly
from synthmap.audit.mechanism import AS_IT_IS

LONE = chosen.exact_worlds()[0]
PAIR, CAUGHT = chosen.exact_controls()[0]
ATTACKED = chosen.attacks()[1]
LINKAGE = literature.literature()[0]
KEPT = LINKAGE.against(lambda table, draws: unprotected(LINKAGE.pair[0], draws), "dirichlet")  # one table for all
SHOWN = LINKAGE.against(unprotected, "no protection")
SHORT = Attack(ATTACKED.world, ATTACKED.pair, 2000)
SINGLES = functools.cache(chosen.audit_float_dirichlet)
BROKEN = Attack(ATTACKED.world, ATTACKED.pair, 2000, broken.ONLY_OCCUPIED_CELLS)


@pytest.fixture
def synthmap(monkeypatch, capfd):
    """Run `synthmap audit …` over these worlds in this process; return (exit code, stdout, stderr)."""

    def run(
        *words,
        worlds=(LONE,),
        controls=((PAIR, CAUGHT),),
        attacks=(SHORT,),
        attack_controls=(BROKEN,),
        known=(KEPT, SHOWN),
    ):
        monkeypatch.setattr(chosen, "exact_worlds", lambda: list(worlds))
        monkeypatch.setattr(chosen, "exact_controls", lambda: list(controls))
        monkeypatch.setattr(chosen, "audit_float_dirichlet", SINGLES)
        monkeypatch.setattr(chosen, "attacks", lambda: list(attacks))
        monkeypatch.setattr(chosen, "attack_controls", lambda: list(attack_controls))
        monkeypatch.setattr(literature, "audit_literature", lambda stream: tuple([one] for one in known))
        monkeypatch.setattr(sys, "argv", ["synthmap", "audit", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capfd.readouterr()

    return run


def test_all_is_well(synthmap):
    code, out, err = synthmap()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[-1] == "every promise is kept, every breach was found"
    (lone,) = [line for line in lines if LONE.name in line]
    assert lone.split()[-7:] == ["5", "1.5", "1.5", "0", "0", "0", "0"]
    assert next(line for line in lines if line.startswith("✗ noise only on occupied cells")).split()[8] == "inf"


@pytest.mark.parametrize("part", ["exact", "statistical", "literature"])
def test_one_part_alone_as_json(synthmap, part):
    code, out, err = synthmap(f"--{part}", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {"holds", part}
    assert found["holds"] is found[part]["holds"] is True
    assert [one["holds"] for one in found[part]["audits"]] == [True]
    assert {one["holds"] for one in found[part]["controls"]} == {False}


def test_an_infinite_loss_is_null_in_json(synthmap):
    found = json.loads(synthmap("--exact", "--json")[1])
    assert found["exact"]["controls"][0]["worst_epsilon"] is None
    assert found["exact"]["controls"][0]["promised_epsilon"] == 1.5


@pytest.mark.parametrize(
    ("words", "worlds"),
    [
        (["--exact"], {"controls": [(LONE, AS_IT_IS)]}),
        (["--statistical"], {"attack_controls": [SHORT]}),
        (["--statistical"], {"attacks": [BROKEN]}),
        (["--literature"], {"known": (KEPT, KEPT)}),
        (["--literature"], {"known": (SHOWN, SHOWN)}),
        ([], {"attacks": [BROKEN]}),
    ],
    ids=["blind exact audit", "blind attack", "broken promise", "blind to a linkage", "linked", "broken among others"],
)
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_it_fails(synthmap, words, worlds, as_json):
    code, out, err = synthmap(*words, *as_json, **worlds)
    assert (code, err) == (1, "")
    assert '"holds": false' in out if as_json else "do not release" in out


def test_a_plan_with_too_little_noise_is_a_broken_promise(synthmap, monkeypatch):
    monkeypatch.setattr(chosen, "audit_exactly", lambda world, _=None: audit_exactly(world, broken.SEVEN_TENTHS))
    code, out, _ = synthmap("--exact")
    assert code == 1
    assert f"✗ {broken.SEVEN_TENTHS.name}" in out
