"""Reconstruction through what the service answers over HTTP, of a release made by the pipeline."""

import numpy as np
import polars as pl
from starlette.testclient import TestClient

from pipelines.release import release
from synthmap.audit.attacks.reconstruction import answers_from, ask, random_subsets, reconstruct
from synthmap.confidential.sample import write_sample
from synthmap.service.app import create_app
from synthmap.service.settings import service_settings
from synthmap.spec import read_spec


def test_the_services_sums_give_back_the_release_and_never_the_table(tmp_path):
    write_sample(tmp_path / "region", workers=1_500, zones=300, destinations=100, seed=4)
    spec = read_spec(tmp_path / "region" / "spec.toml")
    spec = spec.model_copy(
        update={"store": tmp_path / "store", "privacy": spec.privacy.model_copy(update={"epsilon": 1.0})}
    )
    found = release(spec, scheduler="threads")
    confidential = pl.read_parquet(tmp_path / "region" / "od.parquet")
    published = pl.read_parquet(found.path / "od" / "*.parquet")
    zones = pl.read_parquet(found.path / "zones.parquet")

    sizes = confidential.group_by("destination").agg(pl.col("count").sum()).sort("destination")
    small = sizes.filter(pl.col("count") <= 3)
    workplaces, headcount = small["destination"].to_list(), small["count"].to_numpy().astype(np.int64)
    tracts = zones["tract"].drop_nulls().unique(maintain_order=True).to_list()[::2]
    area = zones.filter(pl.col("tract").is_in(tracts))["id"].to_list()
    subsets = random_subsets(2 * len(workplaces), len(workplaces), seed=1)

    database = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    with TestClient(create_app(service_settings(store=tmp_path / "store", database=database))) as client:

        def answer(destinations):
            asked = {"origin_level": "tract", "origin": tracts, "destination": list(destinations), "limit": 10_000}
            said = client.get(f"/releases/{found.release}/od", params=asked)
            assert said.status_code == 200
            rows = said.json()
            assert rows["numberReturned"] < 10_000
            return float(sum(flow["count"] for flow in rows["rows"]))

        rebuilt = reconstruct(subsets, ask(answer, workplaces, subsets), headcount)

    def living_there(table):
        answer = answers_from(table, area)
        return [answer([one]) for one in workplaces]

    assert len(workplaces) > 20
    assert reconstruct(subsets, ask(answers_from(confidential, area), workplaces, subsets), headcount).tolist() == (
        living_there(confidential)
    )
    assert rebuilt.tolist() == living_there(published)
    assert living_there(published) != living_there(confidential)
