"""What is printed: a picture of the map, its legend and the results, without what only a screen can use."""

import numpy as np
import pytest
from mappage import PHONE, settle
from PIL import Image

PRINTS = "() => window.dispatchEvent(new Event('beforeprint'))"
PRINTED = "() => window.dispatchEvent(new Event('afterprint'))"


def look(page, element, path):
    page.locator(element).screenshot(path=path)
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE}])
def test_a_picture_of_the_map_is_printed_and_no_controls(shown, odd, options, tmp_path):
    page = shown(odd, options=options, area="side", id="east", level="side")
    shade = look(page, ".canvas", tmp_path / "screen.png").reshape(-1, 3)
    page.evaluate(PRINTS)  # as Chromium does itself when it prints
    page.emulate_media(media="print")
    printed = look(page, ".printed canvas", tmp_path / "printed.png").reshape(-1, 3)
    assert not page.locator(".canvas").is_visible()
    colours, often = np.unique(shade, axis=0, return_counts=True)
    assert (np.abs(printed - colours[often.argmax()]).max(axis=1) < 6).any()
    assert len(np.unique(printed, axis=0)) > 20  # not blank: circles, areas and arrows
    assert (np.abs(printed - (10, 79, 87)).max(axis=1) < 40).any()  # a flow, which another canvas draws
    assert page.locator(".legend [data-legend=flows]").is_visible()
    assert page.locator(".headline").is_visible()
    assert page.locator("button:visible, input:visible, .panel .field:visible").count() == 1  # the release's name
    bars = page.locator(".bar").evaluate_all("all => all.map(one => getComputedStyle(one).printColorAdjust)")
    assert bars
    assert set(bars) == {"exact"}
    page.emulate_media(media="screen")
    page.evaluate(PRINTED)
    settle(page)
    assert page.locator(".printed canvas").count() == 0
    assert page.locator(".legend").evaluate("one => one.open") == ("viewport" not in options)


def test_a_long_list_is_printed_whole(shown, made_up):
    page = shown(made_up, level="zone")
    page.locator("summary", has_text="The flows on the map").click()
    page.locator(".panel .tall tbody tr").first.wait_for()
    cut = "all => all.some(one => one.scrollHeight > one.clientHeight + 1)"
    assert page.locator(".tall").evaluate_all(cut)
    page.emulate_media(media="print")
    assert not page.locator(".tall").evaluate_all(cut)


def test_chromium_prints_pages_and_shows_the_map_again(shown, odd, tmp_path):
    page = shown(odd)
    before = look(page, ".canvas", tmp_path / "before.png")
    page.evaluate("() => addEventListener('afterprint', () => { window.printed = true; })")
    page.evaluate("""() => addEventListener('beforeprint', () => {
        window.taken = document.querySelectorAll('.printed canvas').length; })""")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("[window.taken, window.printed]") == [1, True]
    settle(page)
    assert (np.abs(look(page, ".canvas", tmp_path / "after.png") - before).max(axis=2) < 6).mean() > 0.99
