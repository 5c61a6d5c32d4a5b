"""``synthmap export``: files beside no other release's."""

import json

import pyogrio


def test_files_are_written_below_the_release_s_id(command, small_release, tmp_path):
    release = small_release()
    done = command("export", release, tmp_path / "out", "--format", "csv", "--format", "release.gpkg", "--json")
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    assert {one.rsplit("/", 1)[1] for one in files} == {"flows.csv", "flows.csv-metadata.json", "release.gpkg"}
    assert all(one.startswith(str(tmp_path / "out" / release.name)) for one in files)
    table = pyogrio.read_dataframe(tmp_path / "out" / release.name / "release.gpkg", layer="flows")
    assert table["count"].sum() == 9


def test_an_unknown_format_is_one_line(command, small_release, tmp_path):
    done = command("export", small_release(), tmp_path / "out", "--format", "xls")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (tmp_path / "out").exists()
