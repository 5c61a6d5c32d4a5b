"""What must hold of a site at every moment, whoever was killed when."""

from collections.abc import Iterable
from fractions import Fraction

import sites

from pipelines.seal import Seal, check_goes_on
from synthmap.catalog.jobs import Job
from synthmap.catalog.ledger import read_account
from synthmap.published.store import ReleaseStore
from synthmap.release.verify import verify

_VERIFIED: set[str] = set()  # SHA-256 of manifests, which have those of all else that a release is


def published(site: sites.Site) -> dict[str, bytes]:
    """Return the manifest of every release that a service would show; each is whole and paid for.

    Raises
    ------
    AssertionError
        If a release is half there, is not in the ledger, or costs more or less than the ledger says.
    """
    seen = Seal(site.registry).seen(sites.DATASET)
    account = read_account(site.catalog, sites.DATASET)  # verifies the chain
    check_goes_on(account, seen)
    listed = ReleaseStore(site.store).list()
    assert [one.fault for one in listed if one.fault is not None] == []
    for one in listed:
        assert one.opened is not None
        if one.opened.etag not in _VERIFIED:  # that no file has changed since is seen whenever releases are listed
            verify(one.opened.directory)
            _VERIFIED.add(one.opened.etag)
        assert account.losses[one.id].drawn
        dp, charge = one.opened.manifest.privacy.dp, account.losses[one.id].charge
        assert (Fraction(dp.epsilon), Fraction(dp.delta)) == (Fraction(charge.epsilon), Fraction(charge.delta))
    charges = [loss.charge for loss in account.losses.values()]
    assert account.spent == (
        sum((Fraction(one.epsilon) for one in charges), Fraction(0)),
        sum((Fraction(one.delta) for one in charges), Fraction(0)),
    )
    return {one.id: (site.store / one.id / "manifest.json").read_bytes() for one in listed}


def spent_on(site: sites.Site) -> dict[str, list[str]]:
    """Return the kinds of the ledger's entries by the release that they are about."""
    found: dict[str, list[str]] = {}
    for entry in read_account(site.catalog, sites.DATASET).entries:
        if entry.body.name:
            found.setdefault(entry.body.name, []).append(entry.body.kind.value)
    return found


def spent_for_nothing(site: sites.Site) -> set[str]:
    """Return the releases that may have been shown and are not in the store: their runs died right before the rename.

    Nothing is drawn for them again; their payment stands.
    """
    seal = Seal(site.registry)
    return {name for name in spent_on(site) if seal.may_be_shown(name)} - set(published(site))


def left(site: sites.Site) -> list[str]:
    """Name the hidden things that lie in the store or in scratch; what the catalog needs is none of them."""
    hidden = [path.name for path in site.store.glob(".*") if path.name != ".catalog"]
    return sorted(hidden + ([path.name for path in site.scratch.iterdir()] if site.scratch.exists() else []))


def finished_once(site: sites.Site, jobs: Iterable[Job]) -> None:
    """Check that every job made its release, was paid for once, and left nothing."""
    names = [job.release for job in jobs]
    assert [site.job(job).state.value for job in jobs] == ["successful"] * len(names)
    assert sorted(published(site)) == sorted(filter(None, names))
    assert all(spent_on(site)[name or ""] == ["release", "drawing"] for name in names)
