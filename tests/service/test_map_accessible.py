"""axe finds no serious fault in the map: light and dark, wide and narrow, with all of it open."""

import pytest
from mappage import PHONE, picture, settle, unfold

AXE = "synthmap/service/web/node_modules/axe-core/axe.min.js"
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def axe(repository):
    path = repository / AXE
    if not path.exists():
        pytest.skip("axe-core is not installed: python synthmap/service/web/build.py --lint brings it")
    return path.read_text(encoding="utf-8")


def serious(page, axe):
    """Serious and critical faults, each with where it is."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [(one["id"], node["target"], node["failureSummary"]) for one in found["violations"]
            if one["impact"] in ("serious", "critical") for node in one["nodes"]]  # fmt: skip


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_axe_finds_no_serious_fault(shown, axe, odd, scheme, size, tmp_path):
    page = shown(odd, options={"color_scheme": scheme, "viewport": size}, area="side", id="east")
    for title in ("Analyses", "Privacy statement", "Downloads", "Key and publishing"):
        unfold(page, title)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("section.analysis")
    page.locator("section.analysis summary").click()
    settle(page)
    assert serious(page, axe) == []
    picture(page, f"axe-{scheme}-{size['width']}", tmp_path)


def test_axe_would_find_a_fault(shown, axe, odd):
    page = shown(odd)
    page.evaluate("document.querySelector('.panel').append(document.createElement('input'))")
    assert [one[0] for one in serious(page, axe)] == ["label"]
