"""Analyses, the statement and files on the map: the figures are the API's, and files arrive."""

import csv

import browser
import pytest
from axe import serious
from mappage import get, ignoring, picture, settle, unfold, until


@pytest.fixture
def county(shown, client, made_up):
    """The map with one county chosen, another county's id, and their level."""
    level = client.get(f"/releases/{made_up}/levels").json()["levels"][2]["id"]
    rows = client.get(f"/releases/{made_up}/od", params={"level": level, "top": 40}).json()["rows"]
    first, other, *_ = dict.fromkeys(row["destination"] for row in rows)
    return shown(made_up, area=level, id=first), other


def run(page, name):
    """Run an analysis and return the service's answer to it."""
    with page.expect_response(lambda one: f"/analyses/{name}" in one.url) as answer:
        page.get_by_role("button", name="Run", exact=True).click()
    settle(page)
    return answer.value


def test_every_analysis_shows_the_figures_of_the_api(county, made_up, tmp_path):
    page, other = county
    unfold(page, "Analyses")
    page.get_by_role("button", name="Run", exact=True).wait_for()
    names = [one["name"] for one in get(page, f"/releases/{made_up}/analyses")["analyses"]]
    assert len(names) > 6
    for name in sorted(set(names) - {"area", "time"}):
        page.get_by_label("Analysis", exact=True).select_option(name)
        if name == "paired-areas":
            page.get_by_role("button", name="Keep the chosen area as A").click()
            page.get_by_role("button", name="Remove").click()
            page.get_by_label("Id", exact=True).fill(other)
            page.get_by_role("button", name="Choose", exact=True).click()
            settle(page)
        found = run(page, name).json()
        shown = page.locator("section.analysis")
        assert shown.locator("h3").inner_text() == found["analysis_title"]
        shown.locator("summary", has_text="All figures").click()
        widths = "rows => rows.map(row => row.clientWidth)"
        assert min(shown.locator("details tbody th").evaluate_all(widths)) > 100  # names are not squeezed to letters
        lines = [row.locator("td").all_inner_texts() for row in shown.locator("details tbody tr").all()]
        cells = [line[0] for line in lines]
        for line, row in zip(lines, found["rows"], strict=True):
            assert [segment(cell) for cell in line[1:-1]] == [doubt(row["segments"][one]) for one in found["segments"]]
        assert found["segments"]
        assert [one.split(" ±")[0] for one in cells] == [f"{row['workers']:,}" for row in found["rows"]]
        for text in (*found["warnings"], found["citation"], found["expected_error"]):
            assert text in shown.inner_text()
        assert sum("±" in one for one in cells) == sum(row["expected_error"] > 0 for row in found["rows"])
        shown.locator("h3").scroll_into_view_if_needed()
        picture(page, f"analysis-{name}", tmp_path)


def segment(text):
    """What a cell of a segment tells: the number, and how it is to be read where that is with care."""
    told, *care = text.split("\n")
    return number(told), *care


def doubt(figure):
    """The same of the API's answer."""
    return figure["workers"], *(one for one in [figure["trust"]] if one in ("weak", "noise"))


def number(text):
    """The number before the expected error, as the page writes it in British English."""
    return int(text.split(" ±")[0].replace(",", ""))


def charted(shown):
    """The differences that a comparison charts as bars and sectors, and whether the expected error stands beside."""
    bars = shown.locator(".ranked td.number").all_inner_texts()
    assert {one.split("\n")[1] for one in bars} <= {"within noise", "more than noise", "exact"}
    sectors = [one.split(": ")[1] for one in shown.locator(".radial path title").all_text_contents()]
    return sorted((one.split("\n")[0].split(" ±")[0], "±" in one) for one in (*sectors, *bars))


@pytest.fixture
def compared(chrome, live_two, two, made_up, client):
    """The map with the county of most workers, of two releases; the later one is shown."""
    (later,) = {path.name for path in two.iterdir()} - {made_up}
    rows = client.get(f"/releases/{made_up}/od", params={"level": "county", "top": 1}).json()["rows"]
    with browser.opened(chrome, live_two) as page:
        page.goto(f"{live_two}/map#release={later}&area=county&id={rows[0]['destination']}")
        settle(page)
        unfold(page, "Analyses")
        page.get_by_label("Analysis", exact=True).select_option("time")
        yield page, {"before": made_up, "after": later}


@pytest.mark.parametrize("of", ["inflow-outflow", "area-profile", "distance-direction", "destinations", "origins"])
def test_two_releases_are_compared_on_the_map(compared, of, tmp_path):
    page, releases = compared
    page.get_by_label("What is compared").select_option(of)
    found = run(page, "time").json()
    assert found["parameters"]["of"] == of
    assert found["parameters"]["releases"] == releases
    shown = page.locator("section.analysis")
    assert releases["before"] in shown.inner_text()
    rows = [one for one in found["rows"] if one.get("group") == "unit"] or found["rows"]
    signed = [f"{one['workers']:+,}" if one["workers"] else "0" for one in rows]
    assert charted(shown) == sorted(zip(signed, [one["expected_error"] > 0 for one in rows], strict=True))
    shown.locator("summary", has_text="All figures").click()
    for line, row in zip(shown.locator("details tbody tr").all(), found["rows"], strict=True):
        cells = line.locator("td").all_inner_texts()
        told = row["before"]["workers"], row["after"]["workers"], row["workers"]
        assert tuple(number(one) for one in cells[:3]) == told
        assert ("±" in cells[2]) == (row["expected_error"] > 0)
        assert cells[2].startswith("+") == (row["workers"] > 0)
        noise = "within noise" if row["within_noise"] else "more than noise"
        assert cells[-1] == (noise if row["expected_error"] else "exact")
    assert of != "distance-direction" or serious(page) == []
    for part in ("h3", "figure", ".ranked"):
        if shown.locator(part).count():
            shown.locator(part).first.scroll_into_view_if_needed()
            shown.locator(part).first.evaluate("one => one.scrollIntoView()")
            picture(page, f"analysis-time-{of}-{part.strip('.')}", tmp_path)


WIDTHS = """all => all.map(one => one.querySelector('.bar').getBoundingClientRect().width
    / one.getBoundingClientRect().width)"""


DRAWN = "all => all.map(one => one.getAttribute('d'))"


def test_charts_are_as_long_dark_and_wide_as_their_figures_tell(county):
    page, _ = county
    unfold(page, "Analyses")
    page.get_by_label("Analysis", exact=True).select_option("distance-direction")
    rows = run(page, "distance-direction").json()["rows"]
    bars = [row for row in rows if row["direction"] in ("same_zone", "elsewhere", "all")]
    most = max(row["workers"] + row["expected_error"] for row in bars)
    shown = page.locator("section.analysis")
    assert shown.locator(".track").evaluate_all(WIDTHS) == pytest.approx([r["workers"] / most for r in bars], abs=0.01)
    sectors = {(row["direction"], row["from"]): row["workers"] for row in rows if row not in bars}
    darkest = max(sectors.values())
    paths = shown.locator(".radial path").evaluate_all(
        "all => all.map(one => Number(one.getAttribute('fill-opacity')))"
    )
    wanted = [0.08 + 0.87 * workers / darkest if workers else 0 for workers in sectors.values()]
    assert paths == pytest.approx(wanted, abs=1e-3)
    assert len(set(paths)) > 3
    page.get_by_label("Analysis", exact=True).select_option("inflow-outflow")
    figures = {row["figure"]: row["workers"] for row in run(page, "inflow-outflow").json()["rows"]}
    inward, inside, outward = (figures[one] for one in ("in_commuters", "live_and_work", "out_commuters"))
    most = max(inward, inside, outward)
    arrows = [2 * (88 - float(one.split()[1])) for one in shown.locator(".inout path").evaluate_all(DRAWN)]
    assert arrows == pytest.approx([34 * inward / most, 34 * outward / most], abs=0.01)
    middle = float(shown.locator(".inout circle").nth(1).get_attribute("r"))
    assert middle == pytest.approx(40 * (inside / most) ** 0.5, abs=0.01)


def test_an_analysis_is_a_file(county, tmp_path):
    page, _ = county
    unfold(page, "Analyses")
    page.get_by_role("button", name="Run", exact=True).wait_for()
    found = run(page, "inflow-outflow").json()
    for form, start in (("CSV", b""), ("PNG", b"\x89PNG"), ("PDF", b"%PDF")):
        with page.expect_download() as arrived:
            page.get_by_role("button", name=form, exact=True).click()
        path = tmp_path / arrived.value.suggested_filename
        arrived.value.save_as(path)
        assert path.read_bytes().startswith(start)
        assert path.name == f"{found['release']}-inflow-outflow.{form.lower()}"
        if form == "CSV":
            rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
            assert [int(row["workers"]) for row in rows] == [row["workers"] for row in found["rows"]]


def test_statement_and_files_of_a_release_are_there(shown, odd, tmp_path):
    page = shown(odd)
    unfold(page, "Privacy statement")
    page.wait_for_selector(".statement")
    assert page.locator(".statement").inner_text().strip() == page.request.get(
        page.url.split("/map")[0] + f"/releases/{odd}/statement", headers={"accept": "text/plain"}
    ).text().strip()  # fmt: skip
    page.get_by_text("No ledger of this service holds this release.").wait_for()
    unfold(page, "Downloads")
    with page.expect_download() as arrived:
        page.get_by_role("link", name="plan.parquet").click()
    arrived.value.save_as(tmp_path / "plan.parquet")
    assert (tmp_path / "plan.parquet").read_bytes()[:4] == b"PAR1"
    picture(page, "downloads", tmp_path)


def test_beside_the_statement_stands_what_the_ledger_comes_to_by_each_rule(shown, made_up):
    page = shown(made_up)
    loss, entry = {"epsilon": 10.0, "delta": 0.0}, {"number": 1, "kind": "release", "time": "2026-01-01T00:00:00+00:00"}
    account = {"dataset": "x", "title": "", "budget": loss, "spent": loss, "left": loss, "composition": "plain sum"}
    tighter = {"epsilon": 5.2500001, "delta": 1.2341e-6, "composition": "optimal if fixed in advance"}
    others = account | {"dataset": "w", "tighter": None, "entries": [], "composition": "of others"}
    own = account | {"tighter": tighter, "entries": [entry | loss | {"name": made_up}]}
    page.route("**/ledger", lambda route: route.fulfill(json={"datasets": [others, own], "links": []}))
    unfold(page, "Privacy statement")
    told = page.get_by_text("All that was released of the same jobs, together:")
    told.wait_for()
    assert told.locator("li").all_inner_texts() == [
        "ε = 10, δ = 0 (plain sum)", "or ε = 5.25001, δ = 1.24·10⁻⁶ (optimal if fixed in advance)"
    ]  # fmt: skip


def test_what_was_spent_is_rounded_up_and_what_is_left_is_rounded_down(shown, made_up):
    """ε = 4.004 must not read as 4, nor 3.9999999 that are left."""
    page = shown(made_up)
    budget, spent, left = (
        {"epsilon": epsilon, "delta": delta}
        for epsilon, delta in ((8.0039999, 1e-5), (4.004 + 0.1 + 0.1 + 0.1, 1.0001e-6), (3.9999999, 8.9999e-6))
    )
    entries = [{"number": i, "kind": kind, "name": "", "time": "2026-01-01T00:00:00+00:00"} | loss
               for i, (kind, loss) in enumerate((("budget", budget), ("release", left)), start=1)]  # fmt: skip
    account = {"dataset": "x", "title": "", "budget": budget, "spent": spent, "left": left, "composition": "plain",
               "tighter": None, "entries": entries}  # fmt: skip
    page.route("**/datasets", lambda route: route.fulfill(json={"datasets": []}))
    page.route("**/ledger", lambda route: route.fulfill(json={"datasets": [account], "links": []}))
    with ignoring(page, "401"):
        unfold(page, "Key and publishing")
        page.get_by_label("Key", exact=True).fill("smk_made_up")
        page.get_by_role("button", name="Use the key").click()
        page.get_by_text("2 entries").click()
        rows = page.get_by_label("Ledger of x").locator("tr").all_inner_texts()
    told = page.locator("h4:text-is('x') + table tbody tr").all_inner_texts()
    assert [one.split("\t") for one in told] == [
        ["Budget", "8.00399", "1·10⁻⁵"], ["Spent", "4.304", "1.01·10⁻⁶"], ["Left", "3.99999", "8.99·10⁻⁶"]
    ]  # fmt: skip
    assert [one.split("\t")[-2:] for one in rows] == [["8.00399", "1·10⁻⁵"], ["4", "9·10⁻⁶"]]


@pytest.mark.parametrize(
    ("locale", "typed", "bands", "written"),
    [
        ("en-GB", "10 25 50", [10, 25, 50], "10, 25, 50"),
        ("en-GB", "2.5,12", [2.5, 12], "2.5, 12"),
        ("de-DE", "2,5; 12", [2.5, 12], "2,5; 12"),
        ("de-DE", "10, 25 50", [10, 25, 50], "10; 25; 50"),
    ],
)
def test_bands_are_read_as_they_are_written(shown, odd, locale, typed, bands, written):
    page = shown(odd, options={"locale": locale}, area="side", id="east")
    unfold(page, "Analyses")
    page.get_by_label("Analysis", exact=True).select_option("area-profile")
    page.get_by_label("Bands end at").fill(typed)
    page.get_by_label("Bands end at").blur()
    assert run(page, "area-profile").json()["parameters"]["bands"] == bands
    page.get_by_label("Analysis", exact=True).select_option("distance-direction")
    assert page.get_by_label("Bands end at").input_value() == written


FILL = "one => getComputedStyle(one).fill"


def test_charts_follow_the_change_to_dark_and_a_file_that_is_being_made_is_told(shown, odd):
    page = shown(odd, options={"color_scheme": "light"}, area="side", id="east")
    unfold(page, "Analyses")
    run(page, "inflow-outflow")
    parts = page.locator(".inout path").first, page.locator(".inout text").first
    light = [one.evaluate(FILL) for one in parts]
    page.emulate_media(color_scheme="dark")
    settle(page)
    assert not set(light) & {one.evaluate(FILL) for one in parts}
    held = []
    page.route("**/analyses/inflow-outflow*", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks it
    with page.expect_download():
        page.get_by_role("button", name="PNG", exact=True).click()
        page.locator(".status .busy", has_text="Making the PNG").wait_for()
        until(page, lambda: held)
        held[0].continue_()
    page.wait_for_selector(".status .busy", state="detached")
