"""``synthmap ledger``: the budgets of datasets and every loss that was incurred on them."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthmap.commands.datasets import Registry
from synthmap.commands.shared import STORE, AsJson, Database, Store, opened, show
from synthmap.errors import ConfigurationError, LedgerError
from synthmap.privacy.shown import shown_budget, shown_loss

if TYPE_CHECKING:
    from pipelines.release import Released
    from synthmap.catalog.account import Account
    from synthmap.catalog.database import Catalog
    from synthmap.catalog.entries import Charge
    from synthmap.spec import Spec

app = typer.Typer(
    no_args_is_help=True, help="The ledger of privacy losses: budget, show, verify, export, record, refund."
)
UNSEEN = "no seal beside this registry has seen it: a ledger that was cut or replaced as a whole is not found"
DatasetId = Annotated[str, typer.Argument(metavar="DATASET", help="Id of a registered dataset.")]
SomeDataset = Annotated[str | None, typer.Argument(metavar="[DATASET]", show_default=False, help="[all]")]


@app.command()
def budget(
    dataset: DatasetId,
    epsilon: Annotated[float, typer.Option(help="Natural-log ε that all releases together may cost a person.")],
    delta: Annotated[float, typer.Option(help="δ of all together.")],
    registry: Registry = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Set the budget of a dataset, once: it can be neither raised nor lowered. Without one nothing is released."""
    with opened(store, database) as catalog:
        from pipelines.seal import Seal
        from pipelines.settings import worker_settings
        from synthmap.catalog.ledger import set_budget

        seal = Seal(worker_settings(registry=registry).registry)
        sealed = seal.there
        account = set_budget(catalog, dataset, epsilon, delta)
        if sealed:
            seal.remember(account)  # a budget that is replaced before anything is paid is found, too
    values = {"dataset": dataset, "epsilon": epsilon, "delta": delta, "head": account.head}
    show(values, as_json, f"dataset {dataset}: budget {_pair(values, shown_budget)}, for good")


@app.command("show")
def show_(dataset: SomeDataset = None, store: Store = STORE, database: Database = "", as_json: AsJson = False) -> None:
    """Show what was spent on a dataset, and what is left of its budget."""
    with opened(store, database) as catalog:
        found = [_summary(catalog, account) for account in _accounts(catalog, dataset)]
    lines = [line for one in found for line in _lines(one)]
    show({"datasets": found}, as_json, "\n".join(lines) or "no budgets and no losses")


@app.command()
def verify(
    dataset: SomeDataset = None,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An earlier export: the ledger must go on from it.")
    ] = None,
    registry: Registry = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Check that the ledger is whole (hashes, order, sums, its end) and goes on from what workers have seen of it.

    What neither a seal nor an export holds could have been replaced as a whole: it says so, and leaves with code 1.
    """
    from pipelines.seal import Seal, check_goes_on
    from pipelines.settings import worker_settings
    from synthmap.catalog.ledger import read_account

    kept = {} if against is None else _exported(against)
    if dataset is not None and against is not None and dataset not in kept:
        raise LedgerError(f"export ({against}) must hold dataset ({dataset}); it has {', '.join(sorted(kept))}")
    seal = Seal(worker_settings(registry=registry).registry)
    sealed = seal.datasets()
    heads: list[dict[str, Any]] = []
    with opened(store, database) as catalog:
        if dataset is not None and dataset not in sealed:
            _accounts(catalog, dataset)  # an error if there is none
        for id in sorted({*_known(catalog), *sealed, *kept}) if dataset is None else [dataset]:
            seen, hashes = seal.seen(id), kept.get(id, [])
            account = read_account(catalog, id)
            check_goes_on(account, seen)
            if [entry.hash for entry in account.entries[: len(hashes)]] != hashes:
                raise LedgerError(f"the ledger of dataset ({id}) must go on from {against}; it was written anew")
            goes_on = {} if seen is None else {"seal": seen[0]}
            goes_on |= {"export": len(hashes)} if hashes else {}
            heads.append({"dataset": id, "entries": len(account.entries), "head": account.head,
                          "sealed": seen is not None, "goes_on_from_entry": goes_on})  # fmt: skip
    # a dataset without entries that a seal has not seen either has no ledger yet
    verified = all(one["goes_on_from_entry"] or (seal.there and not one["entries"]) for one in heads)
    values: dict[str, Any] = {"verified": verified, "datasets": heads}
    if not verified:
        values["not_checked"] = UNSEEN
    show(values, as_json, "\n".join(_checked(one) for one in heads) or "no ledger")
    if not verified:
        raise typer.Exit(1)


@app.command()
def export(
    dataset: SomeDataset = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Print all entries as they are hashed, one JSON object a line. Kept elsewhere, it proves that nothing changed.

    It names jobs and holds keyed marks of files, so it stays with the curator.
    """
    with opened(store, database) as catalog:
        entries = [entry for account in _accounts(catalog, dataset) for entry in account.entries]
    if as_json:
        show({"entries": [{"entry": json.loads(one.body.to_json()), "hash": one.hash} for one in entries]}, True, "")
    else:
        for one in entries:
            typer.echo(f'{{"entry":{one.body.to_json()},"hash":"{one.hash}"}}')


@app.command()
def record(
    dataset: DatasetId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the loss is for; no other loss has it.")],
    epsilon: Annotated[float, typer.Option(help="Natural-log ε of one time, for one job.")],
    delta: Annotated[float, typer.Option(help="δ of one time, for one job.")] = 0.0,
    kind: Annotated[str, typer.Option(help="query, implicates, segments, metrics or release.")] = "query",
    times: Annotated[int, typer.Option(min=1, help="How often, each with noise of its own: R draws cost R times.")] = 1,
    max_jobs_per_worker: Annotated[int, typer.Option(min=1, help="As in all losses of the dataset.")] = 1,
    segments: Annotated[bool, typer.Option("--segments", help="It protects the segment of a job, too.")] = False,
    registry: Registry = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Record a loss that another program incurs: an answered query, several draws, a table by segment.

    Do so before the answer exists: what passes the budget is refused. It cannot be taken back.
    """
    with opened(store, database) as catalog:
        from pipelines.settings import worker_settings
        from pipelines.spending import record as record_loss

        asked = _loss(kind, times, max_jobs_per_worker, epsilon, delta, segments)
        account = record_loss(catalog, worker_settings(registry=registry).registry, dataset, name, asked)
        found = _summary(catalog, account)
    show(found, as_json, "\n".join(_lines(found)))


@app.command()
def refund(
    dataset: DatasetId,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Id under which the loss was recorded.")],
    registry: Registry = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Take back the loss of a release for which nothing was drawn. Whatever still runs for it will draw nothing.

    Refused where the ledger does not go on from what workers have seen of it.
    """
    with opened(store, database) as catalog:
        from pipelines.seal import Seal
        from pipelines.settings import worker_settings
        from synthmap.catalog.ledger import refund as take_back

        seal = Seal(worker_settings(registry=registry).registry)
        if not seal.there:
            raise ConfigurationError(
                "registry must be the one that the loss was recorded with, with its seal beside it: without, a ledger "
                "that was cut is not found (--registry)"
            )
        done = take_back(catalog, dataset, release, check=seal.check_of(dataset))
    if not done:
        raise LedgerError(f"release ({release}) must be a loss of dataset ({dataset}) for which nothing was drawn yet")
    show({"dataset": dataset, "release": release, "refunded": True}, as_json, f"{release}: refunded")


def paid(spec: "Spec", dataset: str, database: str, registry: Path | None, **options: Any) -> "Released":
    """Return the release of a spec, recorded in the ledger of a dataset first."""
    with opened(spec.store, database) as catalog:
        from pipelines.settings import worker_settings
        from pipelines.spending import release_and_pay

        return release_and_pay(catalog, worker_settings(registry=registry).registry, dataset, spec, **options)


def _loss(kind: str, times: int, jobs: int, epsilon: float, delta: float, segments: bool) -> "Charge":
    """Return a loss that was proved elsewhere; figures count as they were typed."""
    from synthmap.catalog.entries import SPENDING, Adjacency, Kind, as_typed, charge
    from synthmap.privacy.composition import group

    if kind not in SPENDING:
        raise ConfigurationError(f"kind ({kind}) must be one of {', '.join(SPENDING)}")
    for figure, value, most in (("epsilon", epsilon, 1e6), ("delta", delta, 1.0)):
        if not 0 <= value <= most:
            raise ConfigurationError(f"{figure} ({value:g}) must be at least 0 and at most {most:g}")
    adjacency = Adjacency.ORIGIN_OR_SEGMENT if segments else Adjacency.ORIGIN
    rule = "pure" if delta == 0 else "dp"
    one = as_typed(epsilon), as_typed(delta)
    answer = Kind(kind) in (Kind.QUERY, Kind.METRICS)  # it may hold all jobs of a person; in a table they lie apart
    together = group(*one, jobs) if answer else (jobs * one[0], jobs * one[1])
    return charge(Kind(kind), [("table", times, *together)], adjacency=adjacency, rule=rule, max_jobs_per_worker=jobs)


def _known(catalog: "Catalog") -> list[str]:
    """Return the ids of all datasets, registered or in the ledger."""
    from synthmap.catalog.datasets import list_datasets
    from synthmap.catalog.ledger import ledger_datasets

    return sorted({*(one.id for one in list_datasets(catalog)), *ledger_datasets(catalog)})


def _accounts(catalog: "Catalog", dataset: str | None) -> list["Account"]:
    """Return the accounts of one dataset or of all; an unknown one is an error."""
    from synthmap.catalog.datasets import find_dataset
    from synthmap.catalog.ledger import read_account

    known = _known(catalog)
    if dataset is not None and dataset not in known:
        find_dataset(catalog, dataset)
    return [read_account(catalog, id) for id in (known if dataset is None else [dataset])]


def _summary(catalog: "Catalog", account: "Account") -> dict[str, Any]:
    """Return the public view."""
    from synthmap.catalog.datasets import list_datasets
    from synthmap.catalog.ledger_view import summary

    title = next((one.title for one in list_datasets(catalog) if one.id == account.dataset), "")
    return asdict(summary(account, title))


def _checked(one: dict[str, Any]) -> str:
    """Return what was checked of a ledger."""
    seen = [f"from entry {number}, which {'workers have seen' if by == 'seal' else 'the export holds'}"
            for by, number in one["goes_on_from_entry"].items()]  # fmt: skip
    told = f"{one['dataset']}: hashes, order and sums are whole; {one['entries']} entries, ends with {one['head']}; "
    return told + (f"goes on {' and '.join(seen)}" if seen else UNSEEN)


def _lines(values: dict[str, Any]) -> list[str]:
    spent, left, budget = values["spent"], values["left"], values["budget"]
    lines = [f"{values['dataset']}  {values['title']}"]
    if budget is None:
        return [*lines, f"  no budget, so nothing is released: synthmap ledger budget {values['dataset']}"]
    lines.append(f"  budget {_pair(budget, shown_budget)}")
    lines.append(f"  spent  {_pair(spent, shown_loss)}  ({values['composition']})")
    lines.append(f"  left   {_pair(left, shown_budget)}")
    if (tighter := values["tighter"]) is not None:
        lines.append(f"  or     {_pair(tighter, shown_loss)}  ({tighter['composition']})")
    for entry in values["entries"]:
        shown = shown_budget if entry["kind"] == "budget" else shown_loss
        cost = "" if entry["epsilon"] is None else _pair(entry, shown)
        lines.append(
            f"  {entry['number']:>5}  {entry['time'][:19]}  {entry['kind']:<10} {entry['name']}  {cost}".rstrip()
        )
    return [*lines, f"  ends with {values['head']}"]


def _pair(figures: dict[str, Any], shown: Callable[[float], str]) -> str:
    return f"ε = {shown(figures['epsilon'])}, δ = {shown(figures['delta'])}"


def _exported(path: Path) -> dict[str, list[str]]:
    """Return the hashes of an export by dataset, each made anew from what the entry says."""
    from synthmap.catalog.entries import GENESIS, hash_of, read_body

    found: dict[str, list[str]] = {}
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if len(lines) == 1 and "entries" in lines[0]:
            lines = lines[0]["entries"]  # of `export --json`
        texts = [json.dumps(line["entry"], sort_keys=True, separators=(",", ":")) for line in lines]
        stated = [line["hash"] for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerError(f"export ({path}) must be a file that `synthmap ledger export` wrote") from None
    for number, (text, hash) in enumerate(zip(texts, stated, strict=True), start=1):
        body = read_body(text, f"line {number} of {path}")
        hashes = found.setdefault(body.dataset, [])
        if hash != hash_of(text) or body.previous != (hashes[-1] if hashes else GENESIS):
            raise LedgerError(f"line {number} of {path} must be as it was written; the export was damaged")
        hashes.append(hash)
    if not found:
        raise LedgerError(f"export ({path}) must hold at least one entry")
    return found
