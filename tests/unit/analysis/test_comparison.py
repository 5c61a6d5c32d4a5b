import json

import numpy as np
import pytest

from synthmap.analysis.comparison import Coverage, measure
from synthmap.analysis.plots import write_plots
from synthmap.analysis.table import ODTable, pair


@pytest.fixture
def flows(town):
    def make(seed):
        rng = np.random.default_rng(seed)
        zones = len(town.zones)
        return ODTable(
            rng.integers(0, zones + 1, 3000).astype(np.int32),
            np.repeat(np.arange(0, 300, 3, dtype=np.int32), 30),
            np.ones(3000, np.int64),
        )

    return make


def test_a_table_agrees_with_itself(town, flows):
    found, _ = measure(pair(flows(1), flows(1), len(town.zones)), town.zones)
    assert (found.distance_mae_km, found.distance_bias_km, found.length_wasserstein_km, found.tv) == (0, 0, 0, 0)
    assert set(found.cpc.values()) == {1.0}
    assert found.cpl == 1
    assert found.gravity.reference == found.gravity.other


def test_keys_and_relations(town, flows):
    found, by_destination = measure(pair(flows(1), flows(2), len(town.zones)), town.zones)
    levels = ("zone", "tract", "county")
    assert set(found.cpc) == {f"{o}/{d}" for o in levels for d in levels}
    assert found.tv == pytest.approx(1 - found.cpc["zone/zone"])
    assert found.tv_by_level["tract"] == pytest.approx(1 - found.cpc["tract/zone"])
    assert found.length_wasserstein_by_destination_km >= found.distance_mae_km - 1e-9
    assert found.distance_mae_km >= abs(found.distance_bias_km)
    assert found.elsewhere_share_reference > 0
    assert sum(c.error.workers for c in found.by_headcount) == found.workers == 3000
    assert by_destination.density.size == found.destinations == 100


def test_groups_of_measures_say_what_they_are_about(line, table):
    """b is in both, c too but from elsewhere in one of them, a and d are in one each."""
    reference = table((0, 0, 5), (0, 1, 2), (3, 1, 1), (4, 2, 7))
    other = table((0, 1, 4), (1, 2, 1), (1, 3, 20))
    found, _ = measure(pair(reference, other, 4), line)
    assert (found.workers_reference, found.workers, found.destinations) == (15, 25, 4)
    assert found.in_both == Coverage(destinations=2, workers_reference=10, workers=5)
    assert found.with_average == Coverage(destinations=1, workers_reference=3, workers=4)
    assert found.tv == pytest.approx((3 * 1 / 3 + 7 * 1) / 10)
    assert sum(one.error.destinations for one in found.by_headcount) == found.with_average.destinations
    values = found.to_json()
    assert values["in_both"] == {"destinations": 2, "workers_reference": 10, "workers": 5}


def test_tables_without_a_common_destination_cover_none(line, table):
    found, _ = measure(pair(table((0, 0, 5)), table((0, 1, 4)), 4), line)
    assert found.in_both == found.with_average == Coverage(0, 0, 0)
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert values["tv"] is values["distance_mae_km"] is None


def test_json_has_no_number_that_json_lacks(town, table):
    # everybody comes from elsewhere: no distances at all
    away = table((400, 0, 3))
    found, _ = measure(pair(away, away, len(town.zones)), town.zones)
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert values["distance_mae_km"] is None
    assert values["cpl"] is None
    assert values["cpc"]["zone/zone"] == 1
    assert values["by_length"] == []


def test_figures_are_drawn_even_of_nearly_nothing(town, flows, table, tmp_path):
    away = table((400, 0, 3))
    for name, pairs in {"some": (flows(1), flows(2)), "none": (away, away)}.items():
        _, by_destination = measure(pair(*pairs, len(town.zones)), town.zones)
        drawn = write_plots(by_destination, tmp_path / name, title="a release")
        assert [path.name for path in drawn] == [
            "error_by_density_and_length.png",
            "short_commutes.png",
            "long_commutes_in_sparse_places.png",
        ]
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
