"""A release as an entry of OpenDP's registry of deployments: its fields, filled from the manifest and the facts.

Fields, their names and where they stand are those of ``schemas/deployments-schema.yaml`` and
``tests/good_deployments/template.yaml`` in the repository opendp/deployments-registry-data at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b. The schema has been changing: before, the sections were called product,
dp_flavor, model, accounting and resources (sources and authors are now evidence_sources and registry_authors), and
status and tier stood above them. Described in Nanayakkara, Ghazi, Vadhan, "Practitioners' Perspectives on a
Differential Privacy Deployment Registry", arXiv:2509.13509.

What a release cannot know is said so where the registry takes any text, and null where it takes one of a list: null is
for whoever submits the entry to fill in, or to leave out where the registry does not need it.
"""

from typing import Literal

from pydantic import Field

from synthmap.privacy.shown import shown_loss, shown_losses
from synthmap.release import statement_lengths as lengths
from synthmap.release.manifest import Manifest
from synthmap.release.statement_facts import Fact, Facts
from synthmap.release.statement_mechanisms import words_of
from synthmap.release.statement_words import LEDGER, SERVICE, TRUST, amounts, prior

UNNAMED = "not named in the release"


class DataCurator(Fact):
    """Who publishes."""

    data_curator_name: str
    data_curator_type: str | None = Field(description="One of the registry's list; null: a release does not tell.")


class Basic(Fact):
    """What is published."""

    name: str
    data_curators: list[DataCurator]
    description: str
    intended_use: str
    data_product_type: str
    data_product_region: str
    data_product_sector: str | None = Field(description="One of the registry's list; null: a release does not tell.")
    publication_date: str


class Variant(Fact):
    """Which differential privacy, on which data, and what lies outside it."""

    variant_name: str
    data_domain: str
    unprotected_quantities: str


class Parameters(Fact):
    """ε is a natural logarithm. The registry's third, rho, is for another variant."""

    epsilon: float
    delta: float


class PrivacyLossEntry(Fact):
    """Who is protected, and how strongly."""

    privacy_unit: str
    privacy_unit_details: str
    number_of_privacy_units: int
    privacy_parameters: Parameters
    privacy_parameters_details: str


class Model(Fact):
    """Who trusts whom."""

    model_name: str
    model_name_details: str
    trust_assumptions: str
    actors: list[str]
    release_type: str
    release_type_details: str
    data_source_type: str
    data_source_type_details: str
    access_type: str
    access_type_details: str


class Implementation(Fact):
    """How it was chosen and made, how losses add up, what is done after protection."""

    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str
    composition: str
    post_processing: str
    justification: str
    utility: str
    additional_information: str


class Reference(Fact):
    """Fields of BibTeX."""

    title: str
    author: str
    howpublished: str
    year: int


class Evidence(Fact):
    """Where what the entry says can be looked up."""

    evidence_source_type: str
    misc: Reference


class Administrative(Fact):
    """What the entry rests on, and how far it is."""

    evidence_sources: dict[str, Evidence]
    status: Literal["Draft"]
    registry_authors: list[str]
    tier: Literal[3]


class Registry(Fact):
    """What stands under ``deployment`` in an entry of the registry; beside it stands only ``url_slug``."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: PrivacyLossEntry
    deployment_model: Model
    implementation: Implementation
    administrative: Administrative


def make_registry(manifest: Manifest, facts: Facts) -> Registry:
    """Return the entry of a release."""
    return Registry(
        basic=_basic(manifest, facts),
        dp_variant=Variant(
            variant_name="Pure DP" if facts.form == "pure" else "Approximate DP",
            data_domain="All tables with the published headcounts at the published destinations: every worker may live "
            "in any zone"
            + (" or elsewhere" if manifest.zones.elsewhere else "")
            + (" and belong to any segment." if facts.segments else "."),
            unprotected_quantities="; ".join(
                [
                    *(facts.invariants or ["none is declared"]),
                    "which zones are destinations",
                    "zones, their public weights, the plan (plan.parquet) and the prior: made without the confidential "
                    "table but for its headcounts"
                    + ("" if facts.lengths is None else ", and for mean commute lengths measured with noise"),
                ]
            ),
        ),
        privacy_loss=_privacy_loss(facts),
        deployment_model=_model(manifest, facts),
        implementation=_implementation(manifest, facts),
        administrative=Administrative(
            evidence_sources={
                "release": Evidence(
                    evidence_source_type="Formal publication by the deploying organization",
                    misc=Reference(
                        title=f"{manifest.title or manifest.name}: release {manifest.release}",
                        author=manifest.curator or UNNAMED,
                        howpublished="manifest.json, plan.parquet and statement.json of the release",
                        year=int(manifest.created[:4]),
                    ),
                )
            },
            status="Draft",
            registry_authors=[f"synthmap {manifest.software.synthmap}, the program that made the release"],
            tier=3,
        ),
    )


def _basic(manifest: Manifest, facts: Facts) -> Basic:
    zones = f"{manifest.zones.zones:,} zones of vintage {manifest.zones.vintage}"
    return Basic(
        name=manifest.title or manifest.name,
        data_curators=[DataCurator(data_curator_name=manifest.curator or UNNAMED, data_curator_type=None)],
        description="Synthetic workers by destination (workplace) and origin (home)"
        + (f", by segment ({', '.join(facts.segments)})" if facts.segments else "")
        + f": {facts.workers:,} workers at {facts.destinations:,} destinations, {zones}"
        + (f", year {manifest.year}." if manifest.year is not None else "."),
        intended_use="Statistics, maps and models of commuting between areas; not conclusions about a single "
        "workplace's zones, and none about persons.",
        data_product_type="Synthetic data",
        data_product_region=f"{UNNAMED[0].upper()}{UNNAMED[1:]}: where its {zones} lie (zones.parquet)",
        data_product_sector=None,
        publication_date=manifest.created[:10],
    )


def _privacy_loss(facts: Facts) -> PrivacyLossEntry:
    jobs, differs = facts.max_jobs_per_worker, "origin or segment" if facts.segments else "origin"
    return PrivacyLossEntry(
        privacy_unit=facts.unit,
        privacy_unit_details=f"Adjacent tables: {facts.adjacency}. The distance between two tables with the same "
        f"destinations and headcounts is the number of workers whose {differs} differs (change-one distance); adjacent "
        f"ones are at a distance of at most {jobs}. "
        + (
            f"A worker may be in up to {jobs} rows, at different destinations; all change; units are rows. "
            if jobs > 1
            else ""
        )
        + "Output measure: "
        + ("max divergence." if facts.form == "pure" else "fixed smoothed max divergence."),
        number_of_privacy_units=facts.workers,
        privacy_parameters=Parameters(epsilon=facts.dp.epsilon, delta=facts.dp.delta),
        privacy_parameters_details=_parameters(facts),
    )


def _model(manifest: Manifest, facts: Facts) -> Model:
    measured = "" if facts.lengths is None else "and noisy sums of commute lengths "
    return Model(
        model_name="Central",
        model_name_details="The curator holds the confidential table and draws the release from it.",
        trust_assumptions=TRUST,
        actors=[
            f"Curator ({manifest.curator or UNNAMED}): holds the confidential table, chose ε and δ, is trusted.",
            f"Planner (synthmap {manifest.software.synthmap}): chooses cells and noise, sees public data "
            f"{measured}only.",
            "Worker (the program that draws): reads the confidential table, writes synthetic counts "
            f"{measured}only, is trusted with the table and with the random stream, whose key it does not store.",
            SERVICE,
            "Auditor (anyone): `synthmap verify` checks hashes, sums and this statement, and certifies the noise "
            "again from public files; `synthmap audit` enumerates the mechanism.",
            "Readers and attackers (anyone): see the release, may know all other workers' homes, have any "
            "computing power, and may act together.",
        ],
        release_type="One release",
        release_type_details="Drawn once and immutable; a further release of the same table costs anew. Whether more "
        "are planned is not in the release.",
        data_source_type="Static",
        data_source_type_details="One confidential table, read once.",
        access_type="Non-interactive",
        access_type_details="Everybody asks the finished release, at no cost; nobody the confidential table.",
    )


def _implementation(manifest: Manifest, facts: Facts) -> Implementation:
    words, plan, jobs = words_of(manifest.plan), manifest.plan, facts.max_jobs_per_worker
    proofs = "" if facts.lengths is None else ", lengths"
    return Implementation(
        preprocessing_and_hyperparameter_tuning="The plan (coarsening "
        f"{plan.coarsening}, cells {plan.cells}, keep {plan.keep}) is chosen by predicted error from headcounts, "
        f"zones, public weights and the spec{lengths.tuning(facts)}. "
        f"Prior: {manifest.prior.formula}; weight: {manifest.prior.weight}.",
        mechanisms=f"{words.name}. {words.how} {words.exact} {lengths.mechanism(facts)}The stream is AES-256 in "
        "counter mode, keyed from the operating system"
        + (". " if manifest.private else " in private releases; this one was drawn with a fixed seed. ")
        + f"Made by synthmap {manifest.software.synthmap} (compiled sources {manifest.software.source}) on Python "
        f"{manifest.software.python}. Timing and memory of the machine that draws are out of scope.",
        composition="Over destinations in parallel: ε and δ are the largest of any destination. "
        + lengths.composition(facts)
        + _over_jobs(jobs, plan.noise_law == "gaussian")
        + LEDGER,
        post_processing=f"{words.post_processing} Maps, sums, exports and queries are made from the release and "
        "cost nothing.",
        justification=f"ε and δ are the curator's choice ({amounts(facts)}; rule {facts.rule}); reasons for it are "
        f"not in the release. Proofs: synthmap/privacy/proofs ({words.proofs}{proofs}). The tests run the drawing code "
        "through every choice of its random stream in small worlds and compare all neighbouring tables exactly; "
        "mechanisms broken on purpose must fail.",
        utility=f"{words.utility} {prior(facts)}",
        additional_information="The noise certified for every destination is in plan.parquet, hashes of all files in "
        "manifest.json, bounds on beliefs and answers to the questions of NIST SP 800-226 in statement.json.",
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
        f"destination: {shown_losses(one.epsilon, one.delta)} (rule {facts.rule}).",
        *lengths.parameters(facts),
    ]
    if facts.pdp_cells is not None and facts.form == "probabilistic":
        cells = facts.pdp_cells
        found.append(
            "The table as drawn, by cells, is also (ε, δ)-probabilistically DP with "
            f"{shown_losses(cells.epsilon, cells.delta_destination)} for a destination and "
            f"δ = {shown_loss(cells.delta_table, 3)} for all together; that implies the (ε, δ)-DP above, and is not "
            "claimed for what is derived."
        )
    return " ".join(found)
