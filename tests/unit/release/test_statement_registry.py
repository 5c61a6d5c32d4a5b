"""The entry for the registry of deployments: its fields, and what a release can fill them with."""

import pytest

from synthmap.release.manifest import read_manifest
from synthmap.release.statement import read_statement

FIELDS = {  # of tier 3 in the registry's entries, but for what only the curator knows: region, sector, sources, authors
    "product": {"name", "data_curators", "intended_use", "data_product_type", "description", "publication_date"},
    "dp_flavor": {"name", "input_metric", "bound_on_input_distance", "output_measure", "data_domain",
                  "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_description", "privacy_parameters",
                     "privacy_parameters_description"},
    "model": {"model_name", "actors", "release_type", "release_type_description", "data_source_type", "access_type"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"pre_processing_eda_hyperparameter_tuning", "mechanisms", "justification"},
}  # fmt: skip


@pytest.fixture
def entry(small_release):
    def make(change=lambda manifest: None):
        return read_statement(small_release(change=change)).deployment

    return make


def test_it_has_the_fields_of_the_registry_and_none_is_empty(entry):
    found = entry().model_dump()
    assert {part: set(fields) for part, fields in found.items()} == FIELDS
    assert all(value not in ("", [], None) for fields in found.values() for value in fields.values())


def test_it_says_what_the_manifest_says(entry, small_release):
    def change(manifest):
        manifest["privacy"].update(max_jobs_per_worker=2, dp={"epsilon": 8.0, "delta": 2e-6})
        manifest["invariants"]["statements"] = ["headcounts are exact"]
        manifest.update(curator="Statistics Office", year=2019, title="Commuting")

    found = entry(change)
    assert found.product.data_curators == ["Statistics Office"]
    assert (found.product.name, found.product.publication_date) == ("Commuting", "2026-01-01")
    assert "year 2019" in found.product.description
    assert found.dp_flavor.name == "Approximate DP"
    assert found.dp_flavor.bound_on_input_distance == 2
    assert found.dp_flavor.unprotected_quantities[0] == "headcounts are exact"
    assert found.privacy_loss.privacy_parameters.model_dump() == {"epsilon": 8.0, "delta": 2e-6}
    assert "2 times" in found.accounting.composition
    assert "Statistics Office" in found.model.actors[0]


def test_pure_dp_is_called_so(entry):
    found = entry(lambda m: m["privacy"].update(rule="pure", dp={"epsilon": 4.0, "delta": 0.0}, pdp_cells=None))
    assert (found.dp_flavor.name, found.dp_flavor.output_measure) == ("Pure DP", "Max divergence")
    assert "probabilistic" not in found.privacy_loss.privacy_parameters_description


def test_a_seeded_release_does_not_claim_a_secret_stream(entry):
    found = entry(lambda m: m.update(private=False, warning="seeded"))
    assert "this one was drawn with a fixed seed" in found.implementation.mechanisms


def test_a_curator_who_is_not_named_is_not_made_up(entry, small_release):
    assert entry().product.data_curators == ["not named in the release"]


def test_manifests_from_before_curators_were_named_are_read(small_release):
    assert read_manifest(small_release()).curator == ""
