"""A release as an entry of OpenDP's registry of deployments: its fields, filled from the manifest and the facts.

The fields and their names are those of the entries in the repository opendp/deployments-registry-data (2025), described
in Nanayakkara, Ghazi, Vadhan, "Practitioners' Perspectives on a Differential Privacy Deployment Registry",
arXiv:2509.13509. What a release cannot know is said so, for its curator to fill in.
"""

from synthmap.release.manifest import Manifest
from synthmap.release.statement_facts import Fact, Facts
from synthmap.release.statement_mechanisms import words_of
from synthmap.release.statement_words import LEDGER, amounts

UNNAMED = "not named in the release"


class Product(Fact):
    """What is published."""

    name: str
    data_curators: list[str]
    intended_use: str
    data_product_type: str
    description: str
    publication_date: str


class Flavor(Fact):
    """Which differential privacy, on which data, and what lies outside it."""

    name: str
    input_metric: str
    bound_on_input_distance: int
    output_measure: str
    data_domain: str
    unprotected_quantities: list[str]


class Parameters(Fact):
    """ε is a natural logarithm."""

    epsilon: float
    delta: float


class PrivacyLossEntry(Fact):
    """Who is protected, and how strongly."""

    privacy_unit: str
    privacy_unit_description: str
    privacy_parameters: Parameters
    privacy_parameters_description: str


class Model(Fact):
    """Who trusts whom."""

    model_name: str
    actors: list[str]
    release_type: str
    release_type_description: str
    data_source_type: str
    access_type: str


class Accounting(Fact):
    """How losses add up, and what is done after protection."""

    post_processing: str
    composition: str


class Implementation(Fact):
    """How it was chosen and made."""

    pre_processing_eda_hyperparameter_tuning: str
    mechanisms: str
    justification: str


class Registry(Fact):
    """An entry of the registry, tier 3, but for what only the curator knows."""

    product: Product
    dp_flavor: Flavor
    privacy_loss: PrivacyLossEntry
    model: Model
    accounting: Accounting
    implementation: Implementation


def make_registry(manifest: Manifest, facts: Facts) -> Registry:
    """Return the entry of a release."""
    words, plan = words_of(manifest.plan), manifest.plan
    pure = facts.form == "pure"
    jobs = facts.max_jobs_per_worker
    return Registry(
        product=Product(
            name=manifest.title or manifest.name,
            data_curators=[manifest.curator or UNNAMED],
            intended_use="Statistics, maps and models of commuting between areas; not conclusions about a single "
            "workplace's zones, and none about persons.",
            data_product_type="Synthetic data",
            description="Synthetic workers by destination (workplace) and origin (home)"
            + (f", by segment ({', '.join(facts.segments)})" if facts.segments else "")
            + f": {facts.workers:,} workers at {facts.destinations:,} destinations, {manifest.zones.zones:,} zones of "
            f"vintage {manifest.zones.vintage}" + (f", year {manifest.year}." if manifest.year is not None else "."),
            publication_date=manifest.created[:10],
        ),
        dp_flavor=Flavor(
            name="Pure DP" if pure else "Approximate DP",
            input_metric="Change-one distance with destinations fixed: workers whose origin"
            + (" or segment" if facts.segments else "")
            + " differs",
            bound_on_input_distance=jobs,
            output_measure="Max divergence" if pure else "Fixed smoothed max divergence",
            data_domain="All tables with the published headcounts at the published destinations: every worker may live "
            "in any zone"
            + (" or elsewhere" if manifest.zones.elsewhere else "")
            + (" and belong to any segment." if facts.segments else "."),
            unprotected_quantities=[
                *(facts.invariants or ["none is declared"]),
                "which zones are destinations",
                "zones, their public weights, the plan (plan.parquet) and the prior: made without the confidential "
                "table but for its headcounts",
            ],
        ),
        privacy_loss=PrivacyLossEntry(
            privacy_unit=facts.unit,
            privacy_unit_description=f"Adjacent tables: {facts.adjacency}."
            + (f" A worker may be in up to {jobs} rows, at different destinations; all change." if jobs > 1 else ""),
            privacy_parameters=Parameters(epsilon=facts.dp.epsilon, delta=facts.dp.delta),
            privacy_parameters_description=_parameters(facts),
        ),
        model=Model(
            model_name="Central",
            actors=[
                f"Curator ({manifest.curator or UNNAMED}): holds the confidential table, chose ε and δ, is trusted.",
                f"Planner (synthmap {manifest.software.synthmap}): chooses cells and noise, sees public data only.",
                "Worker (the program that draws): reads the confidential table, writes synthetic counts only, is "
                "trusted with the table and with the random stream, whose key it does not store.",
                "Service (the program that publishes): reads finished releases only; need not be trusted with secrets.",
                "Auditor (anyone): `synthmap verify` checks hashes, sums and this statement, and certifies the noise "
                "again from public files; `synthmap audit` enumerates the mechanism.",
                "Readers and attackers (anyone): see the release, may know all other workers' homes, have any "
                "computing power, and may act together.",
            ],
            release_type="One release",
            release_type_description="Drawn once and immutable; a further release of the same table costs anew.",
            data_source_type="Static",
            access_type="Non-interactive",
        ),
        accounting=Accounting(
            post_processing=f"{words.post_processing} Maps, sums, exports and queries are made from the release and "
            "cost nothing.",
            composition="Over destinations in parallel: ε and δ are the largest of any destination. "
            + _over_jobs(jobs, plan.noise_law == "gaussian")
            + LEDGER,
        ),
        implementation=Implementation(
            pre_processing_eda_hyperparameter_tuning="The plan (coarsening "
            f"{plan.coarsening}, cells {plan.cells}, keep {plan.keep}) is chosen by predicted error from headcounts, "
            "zones, public weights and the spec alone, so tuning costs nothing. "
            f"Prior: {manifest.prior.formula}; weight: {manifest.prior.weight}.",
            mechanisms=f"{words.name}. {words.how} {words.exact} The stream is AES-256 in counter mode, keyed from "
            "the operating system"
            + (". " if manifest.private else " in private releases; this one was drawn with a fixed seed. ")
            + f"Made by synthmap {manifest.software.synthmap} (compiled sources {manifest.software.source}) on Python "
            f"{manifest.software.python}. Timing and memory of the machine that draws are out of scope.",
            justification=f"ε and δ are the curator's choice ({amounts(facts)}; rule {facts.rule}); reasons for it are "
            f"not in the release. Proofs: synthmap/privacy/proofs ({words.proofs}). The tests run the drawing code "
            "through every choice of its random stream in small worlds and compare all neighbouring tables exactly; "
            "mechanisms broken on purpose must fail.",
        ),
    )


def _over_jobs(jobs: int, together: bool) -> str:
    """Return how the losses of a worker's jobs add up."""
    if jobs == 1:
        return ""
    if together:
        return f"Over the up to {jobs} jobs of a worker: certified together, which is less than {jobs} times one job. "
    return f"Over the up to {jobs} jobs of a worker in sequence: {jobs} times ε and δ of one job. "


def _parameters(facts: Facts) -> str:
    """Return what ε and δ cover."""
    one = facts.certified_per_job
    found = [
        f"For everything derived from the release, all jobs of a worker together. Certified for one job at the dearest "
        f"destination: ε = {one.epsilon:g}, δ = {one.delta:.3g} (rule {facts.rule})."
    ]
    if facts.pdp_cells is not None and facts.form == "probabilistic":
        cells = facts.pdp_cells
        found.append(
            f"The table as drawn, by cells, is also (ε, δ)-probabilistically DP with ε = {cells.epsilon:g}, "
            f"δ = {cells.delta_destination:.3g} for a destination and {cells.delta_table:.3g} for all together; that "
            "implies the (ε, δ)-DP above, and is not claimed for what is derived."
        )
    return " ".join(found)
