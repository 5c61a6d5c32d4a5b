"""The entry for the registry of deployments: its fields, and what a release can fill them with."""

import json
import re

import pytest

from synthmap.release.manifest import read_manifest
from synthmap.release.statement import read_statement, record
from synthmap.release.statement_registry import UNNAMED

# names and lists of schemas/deployments-schema.yaml in opendp/deployments-registry-data at commit 057e5d81cf60: what
# stands under `deployment`, read there and not from the code
REGISTRY = {
    "basic": ["name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
              "data_product_sector", "publication_date"],
    "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
    "privacy_loss": ["privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
                     "privacy_parameters_details"],
    "deployment_model": ["model_name", "model_name_details", "trust_assumptions", "actors", "release_type",
                         "release_type_details", "data_source_type", "data_source_type_details", "access_type",
                         "access_type_details"],
    "implementation": ["preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing",
                       "justification", "utility", "additional_information"],
    "administrative": ["evidence_sources", "status", "registry_authors", "tier"],
}  # fmt: skip
DEEPER = {
    "data_curators": [["data_curator_name", "data_curator_type"]],
    "privacy_parameters": ["epsilon", "delta", "rho"],
}
ONE_OF = {
    "data_product_type": ["Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                          "Interactive API", "SQL queries"],
    "variant_name": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
    "model_name": ["Local", "Central", "Shuffle", "Federated", "Varies"],
    "release_type": ["One release", "Many releases"],
    "data_source_type": ["Static", "Dynamic"],
    "access_type": ["Interactive", "Non-interactive"],
    "status": ["Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)",
               "Approved (Pending)"],
    "tier": [1, 2, 3],
}  # fmt: skip
EVIDENCE = ["Peer-reviewed publication", "Formal publication by the deploying organization",
            "Authorized organizational attestation", "Other public source"]  # fmt: skip
BIBTEX = {"title", "author", "howpublished", "year"}  # of those that the registry takes
TEXTS = {"name", "description", "intended_use", "data_product_region", "publication_date", "data_domain",
         "unprotected_quantities", "privacy_unit", "privacy_unit_details", "trust_assumptions", "mechanisms",
         "composition", "post_processing", "justification", "preprocessing_and_hyperparameter_tuning"}  # fmt: skip


@pytest.fixture
def entry(small_release):
    def make(change=lambda manifest: None):
        return read_statement(small_release(change=change)).deployment

    return make


def test_it_has_the_fields_of_the_registry(entry):
    found = entry().model_dump()
    assert {part: list(fields) for part, fields in found.items()} == REGISTRY
    basic, loss = found["basic"], found["privacy_loss"]
    assert [list(one) for one in basic["data_curators"]] == DEEPER["data_curators"]
    assert [*loss["privacy_parameters"], "rho"] == DEEPER["privacy_parameters"]  # rho is zCDP's


def test_their_values_are_what_the_registry_takes(entry):
    fields = {name: value for part in entry().model_dump().values() for name, value in part.items()}
    assert {name: fields[name] in values for name, values in ONE_OF.items()} == dict.fromkeys(ONE_OF, True)
    assert [name for name in TEXTS if not (isinstance(fields[name], str) and fields[name].strip())] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", fields["publication_date"])
    assert isinstance(fields["number_of_privacy_units"], int)
    assert all(re.fullmatch(r"\w+", name) for name in fields["evidence_sources"])
    for one in fields["evidence_sources"].values():
        assert one["evidence_source_type"] in EVIDENCE
        assert set(one["misc"]) <= BIBTEX
    assert len(fields["registry_authors"]) >= 1


def test_what_a_release_cannot_know_is_null_or_said_not_to_be_known(entry):
    """Nothing is made up; all else is filled in."""
    fields = {name: value for part in entry().model_dump().values() for name, value in part.items()}
    assert [name for name, value in fields.items() if value in (None, "", [], {})] == ["data_product_sector"]
    assert fields["data_curators"] == [{"data_curator_name": UNNAMED, "data_curator_type": None}]
    assert fields["data_product_region"].lower().startswith(UNNAMED)


def test_with_its_slug_it_is_a_whole_entry(small_release):
    directory = small_release()
    found = json.loads(record(read_statement(directory)))
    assert found["url_slug"] == directory.name
    assert set(found["deployment"]) == set(REGISTRY)


def test_it_says_what_the_manifest_says(entry, small_release):
    def change(manifest):
        manifest["privacy"].update(max_jobs_per_worker=2, dp={"epsilon": 8.0, "delta": 2e-6})
        manifest["invariants"]["statements"] = ["headcounts are exact"]
        manifest.update(curator="Statistics Office", year=2019, title="Commuting")

    found = entry(change)
    assert found.basic.data_curators[0].data_curator_name == "Statistics Office"
    assert (found.basic.name, found.basic.publication_date) == ("Commuting", "2026-01-01")
    assert "year 2019" in found.basic.description
    assert found.dp_variant.variant_name == "Approximate DP"
    assert "at a distance of at most 2" in found.privacy_loss.privacy_unit_details
    assert found.dp_variant.unprotected_quantities.startswith("headcounts are exact; ")
    assert found.privacy_loss.privacy_parameters.model_dump() == {"epsilon": 8.0, "delta": 2e-6}
    assert "2 times" in found.implementation.composition
    assert "Statistics Office" in found.deployment_model.actors[0]
    assert found.administrative.evidence_sources["release"].misc.author == "Statistics Office"


def test_pure_dp_is_called_so(entry):
    found = entry(lambda m: m["privacy"].update(rule="pure", dp={"epsilon": 4.0, "delta": 0.0}, pdp_cells=None))
    assert found.dp_variant.variant_name == "Pure DP"
    assert "Output measure: max divergence." in found.privacy_loss.privacy_unit_details
    assert "probabilistic" not in found.privacy_loss.privacy_parameters_details


def test_a_seeded_release_does_not_claim_a_secret_stream(entry):
    found = entry(lambda m: m.update(private=False, warning="seeded"))
    assert "this one was drawn with a fixed seed" in found.implementation.mechanisms


def test_the_service_is_trusted_with_what_a_curator_had_measured_and_with_nothing_else(entry):
    """Figures of `evaluate` as a job lie where it reads; a release does not know whether there will be such a job."""
    model = entry().deployment_model
    (service,) = (one for one in model.actors if one.startswith("Service"))
    for told in (service, model.trust_assumptions):
        assert "`evaluate`" in told
        assert "exact" in told
        assert "trusted with th" in told
    assert "need not be trusted with secrets, unless" in service


def test_manifests_from_before_curators_were_named_are_read(small_release):
    assert read_manifest(small_release()).curator == ""
