"""The map as a reader uses it: waiting for it, reading it, and asking the service the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import browser
import layout

PHONE = {"width": 390, "height": 844}
MIDDLE = (440, 474)  # pixels of the middle of the map at 1280 × 900
FRAME = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# what ends may be what something else waits for: nothing may go on for as long as some frames take to be drawn
REST = """patience => new Promise((rested, failed) => {
  const end = performance.now() + patience;
  let quiet = 0;
  const look = () => {
    const working = document.querySelector('.status[data-working], .status .busy');
    quiet = working ? 0 : quiet + 1;
    if (quiet > 5) rested();
    else if (performance.now() > end)
      failed(new Error(`still going on: ${working?.dataset.working ?? working?.textContent}`));
    else setTimeout(() => requestAnimationFrame(look), 10);
  };
  look();
})"""


def usable(page: Any) -> None:
    """Wait until a reader can begin: zones are drawn by the scale of the legend, and controls offer the release."""
    page.wait_for_selector("[data-legend=circles] li")
    for control in page.get_by_label("Level").all():
        control.wait_for()
        assert control.is_enabled()
    page.evaluate(FRAME)


def until(page: Any, seen: Callable[[], object]) -> None:
    """Wait until something is so, while the page goes on."""
    for _ in range(browser.PATIENCE // 50):
        if seen():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not come true")


def settle(page: Any) -> None:
    """Wait until nothing is being loaded and the map is drawn."""
    page.wait_for_selector(".legend", state="attached")
    page.evaluate(REST, browser.PATIENCE)


def at(longitude: float, latitude: float, zoom: float = 10.0) -> str:
    """The part of a link that says where the map is."""
    return f"{longitude},{latitude},{zoom}"


def service(page: Any) -> str:
    """The address of the service that a page belongs to."""
    return page.url.split("/map")[0]


def get(page: Any, path: str, **query: Any) -> Any:
    """What the service itself says."""
    answer = page.request.get(f"{service(page)}{path}", params=query)
    assert answer.ok, answer.text()
    return answer.json()


def workers(page: Any) -> int:
    """The headline's figure of the chosen area."""
    settle(page)
    page.wait_for_selector(".headline")
    return int(page.locator(".headline").get_attribute("data-workers"))


def unfold(page: Any, title: str) -> None:
    """Open a part of the panel."""
    page.locator(".panel > details > summary", has_text=title).click()


def picture(page: Any, name: str, directory: Path) -> Path:
    """Take a picture of a state of the map, in which nothing may overlap or be cut off, nor on a phone."""
    layout.in_order(page)
    path = browser.picture(page, name, directory)
    size = page.viewport_size
    if size != PHONE:
        page.set_viewport_size(PHONE)
        settle(page)
        layout.in_order(page)
        browser.picture(page, f"{name}-narrow", directory, whole=True)
        page.set_viewport_size(size)
        settle(page)
    return path


@contextmanager
def ignoring(page: Any, *words: str) -> Iterator[None]:
    """Let the browser report what it is asked to ignore: refusals, which it takes for errors."""
    yield
    page.wait_for_timeout(200)
    page.faults[:] = [one for one in page.faults if not any(word in one for word in words)]
