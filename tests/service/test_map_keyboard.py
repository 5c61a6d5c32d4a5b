"""The keyboard on the map: it stays where it was when the panel is drawn anew."""

from mappage import at, settle, unfold

HELD = """() => {
  const one = document.activeElement;
  return one.ariaLabel ?? one.labels?.[0]?.textContent ?? one.innerText;
}"""
NAMELESS = "all => all.filter(one => one.tabIndex >= 0 && !one.ariaLabel).length"


def held(page):
    """What the keyboard is at."""
    settle(page)
    return page.evaluate(HELD)


def test_lists_keep_the_keyboard_when_another_is_chosen(shown, odd):
    page = shown(odd, area="zone", id="01")
    unfold(page, "Analyses")
    for name, label in (("area-profile", "Analysis"), ("distance-direction", "Analysis")):
        page.get_by_label(label, exact=True).focus()
        page.keyboard.press("ArrowDown")
        assert held(page) == label
        assert page.get_by_label(label, exact=True).input_value() == name
    before = page.get_by_label("Release").input_value()
    page.get_by_label("Release").focus()
    first = page.get_by_label("Release").locator("option").first.get_attribute("value")
    page.keyboard.press("ArrowDown" if before == first else "ArrowUp")
    assert held(page) == "Release"
    assert page.get_by_label("Release").input_value() != before


def test_the_keyboard_goes_to_the_next_where_it_was_is_taken_away(shown, odd):
    page = shown(odd)
    page.get_by_label("Add to what is chosen already").check()
    for name in ("west", "east"):
        page.get_by_label("Id", exact=True).fill(name)
        page.get_by_role("button", name="Choose", exact=True).click()
    page.get_by_label("Remove", exact=False).first.focus()
    page.keyboard.press("Enter")
    assert held(page).startswith("Remove")
    page.keyboard.press("Enter")
    assert held(page) == "Area"  # the heading: nothing is left to remove


def test_who_has_drawn_is_back_where_drawing_began(shown, odd):
    page = shown(odd, at=at(2.15, 48.05, 9))
    for ending in ("Escape", "Finish"):
        page.get_by_role("button", name="Draw an area").focus()
        page.keyboard.press("Enter")
        for move in ("ArrowLeft", "ArrowUp", "ArrowRight"):
            for _ in range(2):
                page.keyboard.press(move)
                settle(page)
            page.keyboard.press("Enter")
        if ending == "Escape":
            page.keyboard.press(ending)
        else:
            page.locator("button:not(:disabled)", has_text=ending).focus()
            page.keyboard.press("Enter")
        assert held(page) == "Draw an area"


def test_only_what_has_a_name_is_reached_by_tab(shown, odd):
    page = shown(odd)
    assert page.locator("canvas").count() > 1
    assert page.locator("canvas").evaluate_all(NAMELESS) == 0
