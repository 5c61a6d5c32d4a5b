"""Readers of what comes from outside meet changed files: refusals of synthmap's own, bounded memory, no crash."""

import re
import subprocess
import sys

TARGETS = [
    "od.csv", "od.parquet", "zones.csv", "zones.parquet", "zones.geojson", "spec.toml", "registry.toml",
    "registry.toml.seal", "manifest.json", "ledger entry", "upload.geojson", "upload.kml", "upload.kmz", "upload.gpkg",
    "upload.zip", "upload shape.shp", "upload shape.dbf", "upload shape.prj", "tile address", "filter text",
    "filter json", "bbox", "cursor", "key",
]  # fmt: skip
EXAMPLES = 120


def test_every_reader_refuses_changed_files_as_it_should(repository):
    line = [sys.executable, "-m", "tests.fuzz", "--examples", str(EXAMPLES)]
    done = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = re.findall(r"^(.+): (\d+) changed files", done.stdout, re.MULTILINE)
    assert [name for name, _ in found] == TARGETS
    assert all(int(number) >= EXAMPLES // 30 for _, number in found)
