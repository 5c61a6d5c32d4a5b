"""How fast a release of 10 million rows is served: ``python -m tests.benchmarks.serving [DIR]``.

The release is made in DIR by `synthmap sample` and `synthmap release` unless it is there (about two minutes). Handlers
are called in process, through the whole application; requests per second and memory are those of a `synthmap serve`
process on this machine, asked by eight threads of this one. No query is asked twice.

The map is opened by Debian's Chromium, which draws without a graphics card here, on the same two cores as the service;
a fresh service and a warmed one, each time with an empty cache. It can be used from the moment its controls are there
and its zones drawn, in the sizes that the legend tells; flows come after.
"""

import argparse
import asyncio
import http.client
import os
import platform
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import polars as pl

from synthmap.published.memory import Memory
from synthmap.service.app import create_app
from synthmap.service.logs import start_log
from synthmap.service.settings import service_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import browser
import mappage

REGION = ["--workers", "16000000", "--zones", "400000", "--destinations", "135000", "--seed", "1"]
READERS = 8
USABLE_SECONDS, FRAME_MS = 3.0, 150.0  # the map must be usable so soon, and drawn so often while it is dragged
SECONDS = 15.0  # of each measurement of throughput
Query = dict[str, object]


def made(directory: Path) -> Path:
    """Return the release of 10 million rows in `directory`, made if need be."""
    synthmap = str(Path(sys.executable).with_name("synthmap"))
    region = directory / "region"
    if not (region / "spec.toml").exists():
        subprocess.run([synthmap, "sample", str(region), *REGION], check=True)
    if not (found := sorted((region / "releases").glob("demo-*"))):
        subprocess.run([synthmap, "release", str(region / "spec.toml")], check=True)
        found = sorted((region / "releases").glob("demo-*"))
    return found[-1]


class Questions:
    """Random questions to a release."""

    def __init__(self, release: Path, seed: int) -> None:
        plan = pl.read_parquet(release / "plan.parquet", columns=["destination", "synthetic_size"])
        self._destinations = plan["destination"].to_list()
        self._busy = np.cumsum(plan["synthetic_size"].to_numpy())
        zones = pl.read_parquet(release / "zones.parquet", columns=["longitude", "latitude"])
        self._west, self._south = zones.min().row(0)
        self._east, self._north = zones.max().row(0)
        self._random = random.Random(seed)

    def into_one(self) -> Query:
        """A destination, each as likely."""
        return {"destination": self._random.choice(self._destinations)}

    def into_busy(self) -> Query:
        """A destination, likely where many work."""
        place = int(np.searchsorted(self._busy, self._random.randrange(int(self._busy[-1])), side="right"))
        return {"destination": self._destinations[place]}

    def top_of_box(self) -> Query:
        """The 100 largest flows of a box of 1 to 60 % of each side."""
        share = self._random.uniform(0.01, 0.6)
        west = self._west + self._random.random() * (1 - share) * (self._east - self._west)
        south = self._south + self._random.random() * (1 - share) * (self._north - self._south)
        box = west, south, west + share * (self._east - self._west), south + share * (self._north - self._south)
        end = self._random.choice(["origin", "destination", "both"])
        return {"top": 100, "bbox": ",".join(f"{side:.6f}" for side in box), "bbox_end": end}

    def counties(self) -> Query:
        """All flows between counties, from some count on."""
        return {"level": "county", "limit": 10_000, "min_count": self._random.randint(1, 50)}

    def mixed(self) -> Query:
        """What a map asks: mostly single destinations, some boxes, few counties."""
        asked = self._random.random()
        return self.into_busy() if asked < 0.8 else self.top_of_box() if asked < 0.97 else self.counties()


def target(release: str, query: Query) -> tuple[str, bytes]:
    return f"/releases/{release}/od", urlencode(query).encode()


async def handled(app: Callable, release: str, query: Query) -> float:
    """Return milliseconds from a request until the end of its answer, without a network."""
    path, text = target(release, query)
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": text, "root_path": "", "headers": [(b"host", b"here")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    status: list[int] = []

    async def receive() -> dict[str, object]:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        status.append(int(str(message.get("status", 0))))

    began = time.perf_counter()
    await app(scope, receive, send)
    taken = 1e3 * (time.perf_counter() - began)
    if status[0] != 200:
        raise SystemExit(f"{path}?{text.decode()}: {status[0]}")
    return taken


def forget_sums(memory: Memory) -> None:
    """Let go what was summed, not what was read, so that it is summed again."""
    for key in [key for key in memory._kept if isinstance(key, tuple) and key[1] == "sums"]:
        memory._bytes -= memory._kept.pop(key).nbytes


def told(name: str, times: list[float]) -> None:
    p50, p99 = np.percentile(times, [50, 99])
    print(f"{name:<44} p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   ({len(times)} requests)", flush=True)


async def handlers(release: Path) -> None:
    """Print how long handlers take."""
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{scratch}/catalog.sqlite"
        app = create_app(service_settings(store=release.parent, database=database, requests_per_minute=0))
        asked = Questions(release, 1)
        told("first request of all (opens, reads the table)", [await handled(app, release.name, {"top": 1})])
        for name, question, number in (
            ("flows into one destination", asked.into_one, 1000),
            ("flows into one destination, by workers", asked.into_busy, 1000),
            ("top 100 flows of a box", asked.top_of_box, 300),
        ):
            told(name, [await handled(app, release.name, question()) for _ in range(number)])
        times = []
        for _ in range(15):
            forget_sums(app.state.service.releases.memory)
            times.append(await handled(app, release.name, asked.counties()))
        told("county to county, summed anew", times)
        told("county to county, sums kept", [await handled(app, release.name, asked.counties()) for _ in range(100)])
        app.state.service.catalog.close()


@contextmanager
def served(release: Path) -> Iterator[tuple[int, int]]:
    """Yield process id and port of a service."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        own = {"DATABASE": f"sqlite:///{scratch}/catalog.sqlite", "REQUESTS_PER_MINUTE": "0", "LOG_LEVEL": "warning"}
        line = [str(Path(sys.executable).with_name("synthmap")), "serve", "--store", str(release.parent)]
        process = subprocess.Popen(
            [*line, "--port", str(port)], env=os.environ | {f"SYNTHMAP_SERVICE_{k}": v for k, v in own.items()}
        )
        try:
            while process.poll() is None and not ready(port):
                time.sleep(0.1)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait(60)


def ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def fetch(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
    return body


def throughput(port: int, release: Path, kind: str) -> None:
    """Print requests per second of eight readers, each on a connection of its own."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS

    def read(seed: int) -> None:
        asked = Questions(release, seed)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while (began := time.perf_counter()) < end:
            path, text = target(release.name, getattr(asked, kind)())
            fetch(connection, f"{path}?{text.decode()}")
            times.append(1e3 * (time.perf_counter() - began))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p99 = np.percentile(times, [50, 99])
    rate = len(times) / SECONDS
    print(f"{READERS} readers, {kind:<30} {rate:6.0f} requests/s   p50 {p50:.1f} ms   p99 {p99:.1f} ms", flush=True)


FRAMES = """() => {
    const kept = {last: performance.now(), gaps: []}; window.kept = kept;
    const tick = (now) => { kept.gaps.push(now - kept.last); kept.last = now; requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
}"""


def view(port: int, release: Path, state: str) -> None:
    """Print how soon the map can be used, and how it moves while it is dragged."""
    address = f"http://127.0.0.1:{port}"
    with browser.chromium() as program, browser.opened(program, address) as page:
        began = time.perf_counter()
        page.goto(f"{address}/map#release={release.name}")
        mappage.usable(page)
        shown = time.perf_counter() - began
        mappage.settle(page)
        drawn = time.perf_counter() - began
        page.get_by_label("Level", exact=True).select_option("zone")
        page.get_by_label("Id", exact=True).fill(str(Questions(release, 1).into_busy()["destination"]))
        asked = time.perf_counter()
        page.get_by_role("button", name="Choose", exact=True).click()
        page.wait_for_selector(".headline")
        told = time.perf_counter() - asked
        page.evaluate(FRAMES)
        x, y = mappage.MIDDLE
        page.mouse.move(x, y)
        page.mouse.down()
        for step in range(60):
            page.mouse.move(x - 3 * step, y - 2 * step)
        page.mouse.up()
        gaps = page.evaluate("window.kept.gaps.slice(1)")
        mappage.settle(page)
        print(
            f"map, {state}: zones and controls after {shown:.1f} s, all flows after {drawn:.1f} s; a chosen zone's "
            f"figures {told:.1f} s; dragged, frames every {np.median(gaps):.0f} ms, at most {max(gaps):.0f} ms",
            flush=True,
        )
    if shown > USABLE_SECONDS or np.median(gaps) > FRAME_MS:
        raise SystemExit(
            f"the map must be usable in {USABLE_SECONDS:g} s, and drawn every {FRAME_MS:g} ms when dragged"
        )


def most_memory(process: int) -> float:
    """Return the most memory a process has had, in GB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    usual = Path(tempfile.gettempdir()) / "synthmap-ten-million"
    parser.add_argument("directory", type=Path, nargs="?", default=usual, help="where the release is, or is made")
    release = made(parser.parse_args(arguments).directory)
    rows = pl.scan_parquet(release / "od" / "*.parquet").select(pl.len()).collect().item()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load before {load}; {rows:,} rows")
    start_log("warning")
    asyncio.run(handlers(release))
    with served(release) as (process, port):
        for state in ("fresh service", "again", "again"):
            view(port, release, state)
        fetch(http.client.HTTPConnection("127.0.0.1", port), f"/releases/{release.name}/od?top=1")
        for kind in ("into_one", "mixed"):
            throughput(port, release, kind)
        print(f"most memory of the serving process: {most_memory(process):.2f} GB")


if __name__ == "__main__":
    main()
