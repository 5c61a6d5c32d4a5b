"""Whole-process time and peak memory of a release, several runs, median, then how it is served: `make bench`.

Not a test: nothing here fails on time. Rhode Island 2019 is used where the data folder exists (set by
SYNTHMAP_TEST_DATA), a made-up region of the same size otherwise.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.benchmarks import serving

RUNS = 3
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("SYNTHMAP_TEST_DATA", ROOT.parent / "shared" / "data"))
RHODE_ISLAND = """
name = "rhode-island"
outside = "elsewhere"
[zones]
path = "{data}/lodes7_ri_2019/ri_xwalk.csv.gz"
vintage = "2010"
[zones.weights]
path = "{data}/us_ri_block_pop_2010/ri_2010_block_pop_vap.csv.gz"
id = "GEOID"
column = "vap"
vintage = "2010"
[[tables]]
path = "{data}/lodes7_ri_2019/ri_od_main_JT00_2019.csv.gz"
vintage = "2010"
[[tables]]
path = "{data}/lodes7_ri_2019/ri_od_aux_JT00_2019.csv.gz"
vintage = "2010"
[privacy]
epsilon = 4.0
delta = 1e-6
"""


def command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("synthmap")), *arguments]


def measured(arguments: list[str]) -> tuple[float, float, str]:
    """Return (seconds, peak memory of the process and all its children in GB, stdout)."""
    began, peak = time.perf_counter(), 0
    process = psutil.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while process.poll() is None:
        try:
            family = [process, *process.children(recursive=True)]
            peak = max(peak, sum(p.memory_info().rss for p in family))
        except psutil.Error:
            pass
        time.sleep(0.05)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return seconds, peak / 1e9, process.stdout.read()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory) / "spec.toml"
        if (DATA / "lodes7_ri_2019").is_dir():
            spec.write_text(RHODE_ISLAND.format(data=DATA))
        else:
            region = ["--workers", "476789", "--zones", "25181", "--destinations", "8505"]
            subprocess.run(command("sample", f"{directory}/region", *region), check=True)
            spec = Path(directory) / "region" / "spec.toml"
        runs = [measured(command("release", str(spec), "--json")) for _ in range(RUNS + 1)][1:]
    released = json.loads(runs[-1][2])
    seconds = [run[0] for run in runs]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        f"{released['workers']:,} workers at {released['destinations']:,} destinations: whole process "
        f"{statistics.median(seconds):.1f} s ({min(seconds):.1f}–{max(seconds):.1f}), "
        f"peak memory of all processes {max(run[1] for run in runs):.2f} GB"
    )
    serving.main([])


if __name__ == "__main__":
    main()
