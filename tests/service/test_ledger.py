"""The public ledger: budgets, sums and releases of every dataset; never a path, a mark of a file or a job."""

import json

import pytest
from bearer import bearer
from losses import CONTENT, loss
from measuredrecord import measured
from sqlalchemy import text

from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.entries import Kind
from synthmap.catalog.keys import Role
from synthmap.catalog.ledger import begin_drawing, read_account, refund, set_budget, spend
from synthmap.published.measured import publish_measured

JOB = "5" * 32


@pytest.fixture
def catalog(client):
    found = client.app.state.service.catalog
    put_dataset(found, Dataset("b", "<b>B</b> é", (), (), "1"))
    put_dataset(found, Dataset("a", "A", (), (), "1"))
    set_budget(found, "a", 4, 1e-4)
    spend(found, "a", "a-1", loss(0.1, 1e-5, jobs=2, times=2), CONTENT, job=JOB)
    begin_drawing(found, "a", "a-1")
    spend(found, "a", "a-2", loss(1.0, jobs=2), CONTENT)
    refund(found, "a", "a-2")
    return found


def test_anybody_reads_budget_sum_rest_and_entries(client, catalog):
    answer = client.get("/ledger")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    hidden = [one["name"] for one in answer.json()["datasets"][0]["entries"]]
    assert hidden == ["", *["(not published)"] * 4]
    a, b = client.get("/ledger", headers=bearer(client, Role.CURATOR)).json()["datasets"]
    assert (a["dataset"], a["title"], b["dataset"], b["title"]) == ("a", "A", "b", "<b>B</b> é")
    assert (a["budget"], a["spent"]) == ({"epsilon": 4, "delta": 1e-4}, {"epsilon": 0.2, "delta": 2e-5})
    assert a["left"]["epsilon"] == pytest.approx(3.8)
    assert "basic composition" in a["composition"]
    assert (a["max_jobs_per_worker"], a["count"], a["head"]) == (2, 5, read_account(catalog, "a").head)
    kinds = [(one["number"], one["kind"], one["name"], one["epsilon"]) for one in a["entries"]]
    assert kinds == [
        (1, "budget", "", 4),
        (2, "release", "a-1", 0.2),
        (3, "drawing", "a-1", None),
        (4, "release", "a-2", 1),
        (5, "refund", "a-2", None),
    ]
    assert a["entries"][1]["exact"][0] == "3602879701896397/18014398509481984"
    assert (b["budget"], b["entries"], b["spent"]["epsilon"], b["left"]["epsilon"]) == (None, [], 0, 0)


def test_a_release_has_a_name_for_everybody_once_it_is_published(client, catalog, made_up):
    spend(catalog, "a", made_up, loss(0.5, jobs=2), CONTENT, job=JOB)
    assert client.get("/ledger").json()["datasets"][0]["entries"][-1]["name"] == made_up


def test_measurements_have_a_name_for_everybody_once_they_are_published(make_client, tmp_path):
    client = make_client(store=tmp_path)
    catalog = client.app.state.service.catalog
    put_dataset(catalog, Dataset("a", "A", (), (), "1"))
    set_budget(catalog, "a", 4, 0)
    spend(catalog, "a", "r.metrics", loss(0.5, kind=Kind.METRICS, rule="pure"), CONTENT)

    def told():
        entry = client.get("/ledger").json()["datasets"][0]["entries"][-1]
        return entry["kind"], entry["name"], entry["epsilon"]

    assert told() == ("metrics", "(not published)", 0.5)
    publish_measured(tmp_path, measured("r", "0" * 64))
    assert told() == ("metrics", "r.metrics", 0.5)


def test_a_smaller_sum_is_told_beside_the_plain_one_with_its_rule(client, catalog):
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: pip install 'synthmap[accounting]'")
    assert client.get("/ledger?dataset=b").json()["datasets"][0]["tighter"] is None
    set_budget(catalog, "b", 20, 1e-6)
    losses = CONTENT.model_copy(update={"tables": ("c" * 64,)})
    spend(catalog, "b", "b-1", loss(0.1, times=100), losses)
    (told,) = client.get("/ledger?dataset=b").json()["datasets"]
    assert told["spent"]["epsilon"] == pytest.approx(10)
    assert 4 < told["tighter"]["epsilon"] < 6
    assert told["tighter"]["delta"] == pytest.approx(5e-7, rel=1e-12)
    assert "optimal composition" in told["tighter"]["composition"]
    assert "fixed in advance" in told["tighter"]["composition"]
    begin_drawing(catalog, "b", "b-1")
    spend(catalog, "b", "b-2", loss(0.1, rule="adp"), losses)
    (told,) = client.get("/ledger?dataset=b").json()["datasets"]
    assert "basic composition of the rounds" in told["tighter"]["composition"]


def test_marks_of_files_and_jobs_are_not_in_it(client, catalog):
    told = client.get("/ledger").text
    for secret in (*CONTENT.tables, *CONTENT.columns.values(), CONTENT.public, CONTENT.key, JOB, "content", "tables"):
        assert secret not in told


def test_one_dataset_can_be_asked_for(client, catalog):
    assert [one["dataset"] for one in client.get("/ledger?dataset=b").json()["datasets"]] == ["b"]
    for unknown in ("c", "../a", "O'Brien", ""):
        assert client.get("/ledger", params={"dataset": unknown}).status_code == 404
    assert client.get("/ledger?data=b").status_code == 400


def test_a_damaged_ledger_shows_no_figures_and_the_others_go_on(client, catalog):
    set_budget(catalog, "b", 1, 0)
    with catalog.write() as session:
        session.execute(text("update ledger set body = replace(body, '\"4\"', '\"9\"') where number = 1"))
    a, b = client.get("/ledger").json()["datasets"]
    assert set(a) == {"dataset", "title", "damaged"}
    assert json.dumps(a).count("damaged") >= 1
    assert b["budget"]["epsilon"] == 1


def test_where_reading_needs_a_key_so_does_the_ledger(make_client):
    client = make_client(anonymous=False)
    assert client.get("/ledger").status_code == 401
    assert client.get("/ledger", headers=bearer(client, Role.READER)).json()["datasets"] == []


def test_there_is_json_only(client, catalog):
    assert client.get("/ledger?f=json").status_code == 200
    assert client.get("/ledger?f=html").status_code == 400
    assert client.get("/ledger", headers={"Accept": "text/csv"}).status_code == 406
