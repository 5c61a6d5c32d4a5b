"""`synthmap release --dataset` killed at every step: the next one makes the same release and pays nothing more.

But for one that is killed between the mark that its release may have been shown and the rename that shows it: the next
one says so, and the one after it pays for another release.
"""

import itertools
import json

import pytest
import sites
from invariants import left, published, spent_for_nothing, spent_on

from synthmap.catalog.ledger import refund


def words(site):
    return ["release", str(site.directory / "spec.toml"), "--scheduler", "threads", "--dataset", sites.DATASET,
            "--database", site.database, "--registry", str(site.registry), "--json"]  # fmt: skip


def unfinished(site):
    return [path.stem for path in site.directory.glob("registry.toml.unfinished/*.json")]


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_a_command_killed_at_its_steps_is_gone_on_with(forks, make_site, chunk):
    site, killed, lost = make_site(), 0, set()
    for number in itertools.count(chunk, 9):
        before, paid = published(site), spent_on(site)
        met = forks.run(directory=site.directory, command=words(site), fault=["kill", number])
        if not met.faults:
            break
        killed += 1
        assert len(spent_on(site)) - len(paid) <= 1
        assert published(site).items() >= before.items()
        if (gone := spent_for_nothing(site) - lost) != set():
            assert unfinished(site) == [*gone]
            assert forks.run(directory=site.directory, command=words(site)).status == 2
            assert f"release ({next(iter(gone))}) must be put back into the store" in site.log
            assert left(site) == unfinished(site) == []
            lost, paid = lost | gone, spent_on(site)
        again = forks.run(directory=site.directory, command=words(site))
        assert again.status == 0, site.log
        name = json.loads(site.log.rstrip().rpartition("\n")[2])["release"]
        assert set(spent_on(site)) - set(paid) == set(published(site)) - set(before) == {name}
        assert spent_on(site)[name] == ["release", "drawing"]
        assert left(site) == unfinished(site) == []
    assert met.status == 0, site.log
    assert killed >= 10
    assert len(lost) <= 3  # steps from the mark to the rename
    assert "Traceback" not in site.log


def test_what_was_refunded_meanwhile_is_paid_for_anew(forks, make_site):
    site = make_site()
    for number in itertools.count(40):
        forks.run(directory=site.directory, command=words(site), fault=["kill", number])
        if spent_on(site):
            break
    (name,) = unfinished(site)
    assert refund(site.catalog, sites.DATASET, name)
    assert forks.run(directory=site.directory, command=words(site)).status == 0, site.log
    (made,) = published(site)
    assert made != name
    assert spent_on(site) == {name: ["release", "refund"], made: ["release", "drawing"]}
    assert unfinished(site) == []


def test_another_spec_does_not_go_on_with_it_and_living_runs_are_left_alone(forks, make_site):
    site = make_site()
    forks.run(directory=site.directory, command=words(site), fault=["kill", 90])
    (dead,) = unfinished(site)
    spec = site.directory / "spec.toml"
    text = spec.read_text()
    spec.write_text(text.replace("epsilon = 4.0", "epsilon = 3.0"))
    assert forks.run(directory=site.directory, command=words(site)).status == 0, site.log
    assert unfinished(site) == [dead]
    spec.write_text(text)
    assert forks.run(directory=site.directory, command=words(site)).status == 0, site.log
    assert unfinished(site) == []
    assert dead in published(site)
    assert len(published(site)) == 2
