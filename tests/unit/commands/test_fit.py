"""`synthmap fit-decay`: a decay with the mean commutes of a public table."""

import hashlib
import tomllib

import numpy as np
import polars as pl
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from synthmap.analysis.prior_table import read_prior_table
from synthmap.analysis.table import pair_km
from synthmap.confidential.sample import write_sample
from synthmap.geography.read import read_zones
from synthmap.geography.region import make_region
from synthmap.mechanism.lengths import fit_to_table
from synthmap.spec import PriorSpec, read_spec

PUBLIC = '[prior.table]\npath = "public.csv"\norigin = "origin"\ndestination = "destination"\ncount = "count"\n'


@pytest.fixture
def spec_path(tmp_path):
    """A spec whose prior has a public table, and whose confidential one cannot be read."""
    region = tmp_path / "region"
    write_sample(region, workers=20_000, zones=1_000, destinations=200, seed=2)
    table = pq.read_table(region / "od.parquet", columns=["origin", "destination", "count"])
    pacsv.write_csv(table, region / "public.csv")
    (region / "od.parquet").write_bytes(b"secret")
    path = region / "spec.toml"
    path.write_text(path.read_text() + PUBLIC + 'vintage = "demo-1"\n')
    return path


def test_what_is_printed_goes_into_a_spec(synthmap, one_object, spec_path):
    printed = tomllib.loads(synthmap("fit-decay", spec_path)[1])["prior"]
    told = one_object("fit-decay", spec_path)
    prior = PriorSpec(**printed)
    assert prior.class_scales_km == told["class_scales_km"]
    assert len(told["mean_km"]) == len(told["class_edges_km"]) + 1 > 1
    assert sum(told["workers"]) == 20_000
    assert told["source"] == "public.csv"
    assert prior.class_source == told["class_source"]
    digest = hashlib.sha256(spec_path.with_name("public.csv").read_bytes()).hexdigest()
    assert prior.class_source == f"public.csv (vintage demo-1, SHA-256 {digest}): declared public by the curator"


def test_one_class_has_a_source_too(synthmap, spec_path):
    """Quotes in a name of a file are those of TOML's text."""
    rows = pl.read_csv(spec_path.with_name("public.csv"), infer_schema=False)
    rows.filter(pl.col("destination") == rows["destination"][0]).write_csv(spec_path.with_name('of "one".csv'))
    spec_path.write_text(spec_path.read_text().replace('path = "public.csv"', "path = 'of \"one\".csv'"))
    prior = PriorSpec(**tomllib.loads(synthmap("fit-decay", spec_path)[1])["prior"])
    assert (prior.class_edges_km, len(prior.class_scales_km)) == ([], 1)
    assert prior.class_source.startswith('of "one".csv (vintage')


def test_the_fitted_prior_has_the_mean_commutes_of_the_table(spec_path):
    spec = read_spec(spec_path)
    region = make_region(read_zones(spec.zones))
    table, _ = read_prior_table(spec, region.zones)
    found = fit_to_table(region, spec, table)
    destination = np.repeat(np.arange(len(region.zones)), np.diff(table.first))
    km = np.minimum(pair_km(table.origin, destination, region.zones), found.cap_km)
    mean = float(np.average(km, weights=table.workers))
    assert np.average(found.mean_km, weights=found.workers) == pytest.approx(mean, rel=0.01)
    assert found.noisy == fit_to_table(region, spec, table).noisy  # nothing random in it


def test_without_a_public_table_there_is_nothing_to_fit_to(one_line, spec_path):
    spec_path.write_text(spec_path.read_text().split("[prior.table]")[0])
    assert "must name a public table" in one_line("fit-decay", spec_path)


def test_a_confidential_table_is_no_public_one(one_line, spec_path):
    spec_path.with_name("od.parquet").write_bytes(spec_path.with_name("public.csv").read_bytes())
    assert "must be another file than the confidential table" in one_line("fit-decay", spec_path)
