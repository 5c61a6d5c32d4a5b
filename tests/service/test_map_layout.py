"""What checks that nothing on the map overlaps or is cut off would find it."""

import layout
import pytest

ADD = """([where, text, style]) => {
  const added = document.createElement('div');
  added.textContent = text;
  Object.assign(added.style, style);
  document.querySelector(where).prepend(added);
}"""
WORDS = "words that were added"
OVER = ".panel h2", {"position": "absolute"}
LOW = ".status", {"position": "fixed", "left": "1rem", "bottom": "2rem"}  # where the legend is
CUT = ".panel", {"overflow": "hidden", "width": "4rem", "whiteSpace": "nowrap"}
THIN = ".panel", {"width": "1rem"}
LONG = "header", {"minWidth": "1400px", "textAlign": "right"}


@pytest.mark.parametrize(("fault", "told"), [(OVER, "over each other.*End"), (LOW, "over each other.*legend"),
                                             (CUT, "cut off"), (LONG, "cut off"), (THIN, "torn apart")])  # fmt: skip
def test_words_that_lie_over_others_or_are_cut_off_are_named(shown, odd, fault, told):
    page = shown(odd)
    layout.in_order(page)
    where, style = fault
    page.evaluate(ADD, [where, WORDS, style])
    with pytest.raises(AssertionError, match=told) as raised:
        layout.in_order(page)
    assert WORDS in str(raised.value)
