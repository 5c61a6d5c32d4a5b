"""Workers of a Dask cluster are killed under a paid run: at each of their steps, at random instants, or every time.

Another worker does their tasks; where none can, or the run itself dies, the next run makes the same release and pays
nothing more.
"""

import json
import random
import signal
import time

import pytest
import sites
from invariants import left, published, spent_on
from waiting import wait_for

TASKS = ("publish_zones", "tabulate", "collect", "measure", "plan_partition", "draw")


class Runs:
    """Paid runs of a site's spec over a Dask scheduler and workers, all of them forks."""

    def __init__(self, forks, site):
        self.forks, self.site, self.order = forks, site, {"directory": site.directory}
        self.started = [forks.start(**self.order, dask_scheduler=site.directory / "address")]
        wait_for((site.directory / "address").exists)
        self.address = (site.directory / "address").read_text()

    def worker(self, *fault):
        self.started.append(self.forks.start(**self.order, dask_worker=self.address, fault=list(fault) or None))
        return self.started[-1]

    def start(self, *fault):
        words = ["release", self.site.directory / "spec.toml", "--scheduler", self.address, "--dataset", sites.DATASET,
                 "--database", self.site.database, "--registry", self.site.registry, "--json"]  # fmt: skip
        return self.forks.start(**self.order, command=[str(word) for word in words], fault=list(fault) or None)

    def ends(self, run):
        """Return the release that a run says it made."""
        assert run.wait().status == 0, self.site.log
        lines = [line for line in self.site.log.splitlines() if line.startswith('{"')]
        return json.loads(lines[-1])["release"]

    def unfinished(self):
        return [path.stem for path in self.site.directory.glob("registry.toml.unfinished/*.json")]

    def whole(self, names):
        """Check that those releases are there, each paid for once, and nothing else."""
        assert sorted(published(self.site)) == sorted(names)
        assert spent_on(self.site) == {name: ["release", "drawing"] for name in names}
        assert left(self.site) == self.unfinished() == []


@pytest.fixture
def runs(forks, make_site):
    found = Runs(forks, make_site())
    yield found
    for one in found.started:
        one.kill()


def test_dask_workers_killed_where_each_task_begins_and_ends_and_while_it_writes(forks, runs):
    """One after the other in the same run: who dies takes with it what it had done, so that the next does it anew."""
    names = []
    for faults in (
        [("kill at", f"begin {task}") for task in TASKS],
        [("kill at", f"end {task}") for task in TASKS],
        [("kill", number) for number in (3, 8, 15, 24)],
    ):
        run = runs.start()
        for fault in faults:
            worker = runs.worker(*fault)
            assert forks.first(worker, run) is worker, (fault, runs.site.log)
            assert worker.wait().faults
        worker = runs.worker()
        names.append(runs.ends(run))
        worker.kill()
    runs.whole(names)


def test_dask_workers_and_runs_killed_at_random_instants(runs):
    draw, killed = random.Random(5), {"worker": 0, "run": 0}
    alone, began = runs.worker(), time.monotonic()
    names = [runs.ends(runs.start())]
    took = time.monotonic() - began
    alone.kill()
    for who in (["worker"], ["run"], ["worker", "run"]) * 4:
        first = runs.worker(*(["after", draw.uniform(0.0, 0.5 * took)] if "worker" in who else []))
        run = runs.start(*(["after", draw.uniform(0.0, 0.7 * took)] if "run" in who else []))
        if "worker" in who:
            killed["worker"] += len(first.wait().faults)
        second = runs.worker()
        if run.wait().status == -signal.SIGKILL:
            killed["run"] += 1
            run = runs.start()
        names.append(runs.ends(run))
        runs.whole(names)
        first.kill()
        second.kill()
    assert killed["worker"] == 8
    assert killed["run"] >= 4


@pytest.mark.parametrize("task", ["tabulate", "draw"])
def test_a_task_that_kills_every_worker_is_one_clear_error_and_paid_for_once(forks, runs, task):
    run, killed = runs.start(), 0
    while (worker := forks.first(runs.worker("kill at", f"begin {task}"), run)) is not run:
        killed += len(worker.wait().faults)
    ended = run.wait()
    assert ended.status == 2, runs.site.log
    assert killed >= 4
    assert "the workers of the cluster were lost during stage" in runs.site.log
    assert left(runs.site) == []
    assert published(runs.site) == {}
    (paid,) = spent_on(runs.site).items()
    if task == "draw":
        assert paid == (*runs.unfinished(), ["release", "drawing"])
    else:
        assert paid[1] == ["release", "refund"]
        assert runs.unfinished() == []
    runs.worker()
    made = runs.ends(runs.start())
    if task == "draw":
        assert made == paid[0]
        runs.whole([made])
    else:
        assert list(published(runs.site)) == [made]
        assert spent_on(runs.site) == dict([paid, (made, ["release", "drawing"])])
