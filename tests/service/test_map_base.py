"""A base map of another server: what it is asked with, whose it is said to be, and what is said where it fails."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import browser
import live
import pytest
from mappage import at, ignoring, picture, settle
from PIL import Image

RED = io.BytesIO()
Image.new("RGB", (256, 256), (200, 30, 30)).save(RED, "PNG")


@pytest.fixture
def tiles():
    """A server of red tiles, what it was asked (path and Referer), and whether it works."""

    class Red(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, self.headers["Referer"]))
            self.send_response(200 if server.works else 500)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(RED.getvalue() if server.works else b"")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Red) as server:
        server.asked, server.works = [], True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_base_map_is_shown_and_a_fault_of_it_told(chrome, store, odd, tiles, tmp_path):
    there = f"http://127.0.0.1:{tiles.server_address[1]}/"
    settings = {"map_tiles": there + "{z}/{x}/{y}.png", "map_attribution": "© <b>Us</b>"}
    with (
        live.serving(store, tmp_path / "catalog.sqlite", **settings) as address,
        browser.opened(chrome, address) as page,
    ):
        page.goto(f"{address}/map#release={odd}&at={at(2.4, 48.05, 7)}")
        settle(page)
        assert "© <b>Us</b>" in page.locator(".maplibregl-ctrl-attrib").inner_text()
        assert tiles.asked
        assert {referer for _, referer in tiles.asked} == {f"{address}/"}
        red, green, blue = Image.open(picture(page, "base-map", tmp_path)).convert("RGB").getpixel((700, 250))
        assert red > green + 20 > blue  # nothing but the base map lies there
        assert page.locator(".status p").count() == 0
        tiles.works = False
        with ignoring(page, "500"):
            page.evaluate("hash => { location.hash = hash; }", f"release={odd}&at={at(3.4, 48.05, 10)}")
            page.locator(".status", has_text="The base map is not all there").wait_for()
            settle(page)
        beyond = [one for one in page.beyond if not one.startswith(there)]
        assert page.beyond
        page.beyond[:] = beyond
