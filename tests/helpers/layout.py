"""What a page shows must not lie over something else, and its words must not be cut off or torn apart."""

from typing import Any

# all words and controls that are seen: each word's own box, less what a scrolled box hides; what hangs over is cut off
_FOUND = """() => {
  const controls = 'button, input, select, textarea, summary, .legend, .status p, .tools, .maplibregl-ctrl';
  const panel = document.querySelector('aside'); // all of it is looked at, not only what is scrolled to
  const scrolled = panel.scrollTop;
  panel.scrollTop = 0;
  const WORD = /(?<![\\p{L}\\p{N}])\\p{L}{2,14}(?![\\p{L}\\p{N}])/gu; // no piece of a hash
  const found = [];
  const cut = [];
  const torn = [];
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const hidden = (style) => [style.overflowX, style.overflowY].some((one) => one === 'hidden' || one === 'clip');
  const put = (name, element, rect) => {
    let { left, top, right, bottom } = rect;
    if (right - left < 1 || bottom - top < 1 || right <= 0) return;
    if (!seen(element)) return;
    if (element.closest('.tooltip, option')) return; // a tooltip lies above what it tells about
    let scrolls = false;
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (one === panel || style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      const box = one.getBoundingClientRect();
      const over = left < box.left - 1 || right > box.right + 1 || top < box.top - 1 || bottom > box.bottom + 1;
      if (over && hidden(style) && !scrolls) cut.push(`${name} in ${describe(one)}`);
      scrolls ||= !hidden(style);
      left = Math.max(left, box.left); right = Math.min(right, box.right);
      top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom);
    }
    if (!scrolls && right > document.documentElement.clientWidth + 1) cut.push(`${name} in the window`);
    if (right - left > 1 && bottom - top > 1) found.push({ name, element, left, top, right, bottom });
  };
  const describe = (one) => [one.tagName.toLowerCase(), ...one.classList].join('.');
  for (const one of document.querySelectorAll(controls))
    put(`${describe(one)} '${(one.innerText || one.value || '').slice(0, 40)}'`, one, one.getBoundingClientRect());
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = words.nextNode(); node; node = words.nextNode()) {
    const text = node.data.trim();
    const parent = node.parentElement;
    if (!text || !seen(parent) || parent.closest('script, style, title')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()];
    for (const rect of rects) {
      const air = rect.height * 0.15; // a line's box is higher than its letters
      const ink = { left: rect.left, right: rect.right, top: rect.top + air, bottom: rect.bottom - air };
      put(`${describe(parent)} '${text.slice(0, 40)}'`, parent, ink);
    }
    if (rects.length > 1) for (const word of node.data.matchAll(WORD)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (range.getClientRects().length > 1) torn.push(`${word[0]} in ${describe(parent)} '${text.slice(0, 40)}'`);
    }
  }
  const over = [];
  found.forEach((one, i) => found.slice(i + 1).forEach((other) => {
    if (one.element.contains(other.element) || other.element.contains(one.element)) return;
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 1 && down > 1) over.push(`${one.name} and ${other.name}`);
  }));
  panel.scrollTop = scrolled;
  return { over, cut, torn, number: found.length };
}"""


def in_order(page: Any) -> None:
    """Check that no words or controls of a page lie over each other, and that no words are cut off or torn apart."""
    found = page.evaluate(_FOUND)
    assert found["number"] > 20, "hardly anything is shown"
    assert not found["over"], "these lie over each other: " + "; ".join(found["over"])
    assert not found["cut"], "these are cut off: " + "; ".join(found["cut"])
    assert not found["torn"], "these words are torn apart: " + "; ".join(found["torn"])
