"""Numbers, shares and times are written as the reader's locale writes them."""

import re

import pytest
from mappage import get, settle, workers


@pytest.mark.parametrize(("locale", "thousands", "decimal"), [("de-DE", ".", ","), ("en-GB", ",", ".")])
def test_figures_are_written_by_locale(shown, made_up, locale, thousands, decimal):
    page = shown(made_up, options={"locale": locale})
    levels = get(page, f"/releases/{made_up}/levels")["levels"]
    rows = get(page, f"/releases/{made_up}/od", level=levels[0]["id"], top=1)["rows"]
    page.get_by_label("Level", exact=True).select_option(levels[0]["id"])
    page.get_by_label("Id", exact=True).fill(rows[0]["destination"])
    page.get_by_role("button", name="Choose", exact=True).click()
    settle(page)
    number = workers(page)
    assert number >= 1000
    written = f"{number:,}".replace(",", thousands)
    assert page.locator(".headline b").inner_text().split(" ±")[0] == written
    shares = page.locator(".result .ranked td.soft").all_inner_texts()
    assert shares
    assert all(re.fullmatch(rf"\d+(\{decimal}\d)?\s?%", one) for one in shares)
    assert any(decimal in one for one in shares)
