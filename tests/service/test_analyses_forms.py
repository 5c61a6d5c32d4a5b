"""Every analysis in every form: the same figures, errors, warnings and citation in each."""

import csv
import io

import pytest
from PIL import Image

from synthmap.service.analysis_kinds import KINDS

OPTIONS = {
    "area-profile": {"end": "home"},
    "distance-direction": {"end": "work"},
    "destinations": {"by": "county"},
    "time": {"of": "distance-direction", "end": "home"},
}


@pytest.fixture(params=KINDS)
def analysis(request, make_client, two, made_up):
    """The name of an analysis, what it must say of itself, and a function that asks the later of two releases for it.

    Its areas are the two counties with the most workers.
    """
    client = make_client(store=two)
    (later,) = {path.name for path in two.iterdir()} - {made_up}
    rows = client.get(f"/releases/{later}/od", params={"level": "county", "top": 40}).json()["rows"]
    a, b = list(dict.fromkeys(row["destination"] for row in rows))[:2]
    said = [later, f"county {a}"]
    query = {"zone": a, "level": "county"} | OPTIONS.get(request.param, {})
    if request.param == "paired-areas":
        query, said = {"a": a, "b": b, "a_level": "county", "b_level": "county"}, [*said, f"county {b}"]
    if request.param == "time":
        query, said = query | {"other": made_up}, [*said, made_up]

    def ask(form):
        answer = client.get(f"/releases/{later}/analyses/{request.param}", params=query | {"f": form})
        assert answer.status_code == 200, answer.text
        return answer

    return request.param, said, ask


def test_a_table_has_the_figures_citation_and_warnings_of_the_answer(analysis):
    name, said, ask = analysis
    body, table = ask("json").json(), list(csv.DictReader(io.StringIO(ask("csv").text, newline="")))
    assert body["analysis"] == name
    for part in (*said, "ε = ", "δ = ", "vintage", "Asked on 20"):
        assert part in body["citation"]
    assert "root mean square" in body["expected_error"]
    assert any("NOT PRIVATE" in warning for warning in body["warnings"])  # their seeds are known
    assert any("from the public prior" in one for one in body["warnings"]) == (body["areas"][0]["end"] != "home")
    assert 0 < body["areas"][0]["share_of_zones"] < 1
    notes = [note for area in body["areas"] for note in area["notes"]]
    assert {(row["citation"], row["warnings"]) for row in table} == {
        (body["citation"], " ".join([*body["warnings"], *notes]))
    }
    assert len(table) == len(body["rows"]) > 0
    for line, row in zip(table, body["rows"], strict=True):
        parts = {"": row} | {f"{other}_": row[other] for other in ("before", "after") if name == "time"}
        for lead, figure in parts.items():
            told = line[f"{lead}workers"], float(line[f"{lead}expected_error"]), line[f"{lead}trust"]
            assert told == (str(figure["workers"]), figure["expected_error"], figure["trust"])
            segment = figure["segments"]["SA02"]
            told = line[f"{lead}SA02"], float(line[f"{lead}SA02_expected_error"])
            assert told == (str(segment["workers"]), segment["expected_error"])
        if name == "time":
            assert line["within_noise"] == str(row["within_noise"]).lower()


def test_pictures_are_drawn_and_say_what_they_are(analysis):
    name, _, ask = analysis
    cited = ask("json").json()["citation"]
    drawn, page = ask("png"), ask("pdf")
    assert drawn.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(drawn.content)) as picture:
        assert picture.text["Description"] == cited
    assert page.headers["content-type"] == "application/pdf"
    assert page.headers["content-disposition"].endswith(f'-{name}.pdf"')
    assert page.content.startswith(b"%PDF-")


def test_directions_have_sums_with_errors_of_their_own(analysis):
    name, _, ask = analysis
    body = ask("json").json()
    if name != "distance-direction":
        assert "sums" not in body
        return
    for sector, whole in body["sums"].items():
        rows = [row for row in body["rows"] if row["direction"] == sector]
        assert whole["workers"] == sum(row["workers"] for row in rows)
        assert 0 < whole["expected_error"] <= sum(row["expected_error"] for row in rows)
