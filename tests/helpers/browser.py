"""Debian's Chromium, driven by Playwright, and what a page that it shows must never do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from missing import missing

CHROMIUM = "chromium"
# no display and no graphics card: only WebGL is computed as if there were one, what it drew is put together without;
# nothing of the browser's own asks the network
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--no-first-run")  # fmt: skip
PATIENCE = 120_000  # milliseconds that anything may take, on a busy machine


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser; tests are left out where Playwright or Chromium is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    program = shutil.which(CHROMIUM)
    if program is None:
        missing("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Yield a page of its own; afterwards it must have asked nobody but `address` and have said no error."""
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}, "locale": "en-GB"} | options))
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.faults, page.beyond = [], []
    page.on("pageerror", lambda fault: page.faults.append(str(fault)))
    page.on("console", lambda said: said.type == "error" and page.faults.append(said.text))
    page.on("request", lambda asked: asked.url.startswith((address, "blob:", "data:")) or page.beyond.append(asked.url))
    try:
        yield page
        assert page.faults == []
        assert page.beyond == []
    finally:
        context.close()


def picture(page: Any, name: str, directory: Path, *, whole: bool = False) -> Path:
    """Take a picture of what is shown, or of the whole page; kept in the directory SYNTHMAP_SCREENSHOTS if set."""
    place = Path(os.environ.get("SYNTHMAP_SCREENSHOTS", directory))
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.png"
    page.screenshot(path=path, full_page=whole)
    return path
