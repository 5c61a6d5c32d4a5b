"""Services that are killed: at steps of what they do, at random instants, and one of two over the same store.

After each: no half release is shown, what was answered holds, and whatever is asked again under its name is one job,
one release and one loss.
"""

import itertools
import json
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import postgres
import pytest
from invariants import finished_once, left, published, spent_on
from served import Served

from synthmap.catalog.jobs import FINAL, dismiss, list_jobs
from synthmap.catalog.keys import Role, add_key

ANSWERED = ("http.request", "http.response.start", "http.response.body")
RECORDING = {  # what is a step of it beside
    "submit": ("statement INSERT INTO jobs", "commit", "committed", *ANSWERED),
    "dismiss": ("statement UPDATE jobs SET", "commit", "committed", *ANSWERED),
}
TELLING = ("look", "read")  # what records nothing has no other boundaries than those of an answer
ENDS_OF_DISMISSED = ([], ["release", "refund"], ["release", "drawing"])  # drawn is paid for, whether or not it is shown


@pytest.fixture
def serve(forks, make_site):
    """Return a service, not yet started, over a new site in whose store is a release."""

    def make(database="", name="site"):
        site = make_site(database, name)
        site.submit()
        assert forks.run(directory=site.directory, database=site.database).status == 0, site.log
        return Served(forks, site, add_key(site.catalog, "test", Role.CURATOR))

    return make


class Client:
    """Asks for releases, dismisses most, looks at them and reads what is published; again until it is answered."""

    def __init__(self, served, name):
        self.served, self.name = served, name
        (self.release,) = [path.parent for path in served.site.store.glob("[!.]*/manifest.json")]
        self.files = {path: (self.release / path).read_bytes() for path in ("manifest.json", "od/part-00000.parquet")}
        self.jobs, self.dismissed, self.unanswered = {}, set(), 0

    def go_on(self, stopped):
        """Ask for one thing after the other, each until it is answered; until `stopped`, but for the last."""
        for number in itertools.count():
            for deed in (self.submit, self.look, self.dismiss if number % 10 else self.look, self.read):
                while not deed(number):
                    self.unanswered += 1
                    time.sleep(0.01)
                if stopped.is_set():
                    return
                time.sleep(0.03)

    def submit(self, number):
        answer = self.served.submit(f"{self.name}-{number}")
        if answer is not None:
            assert answer[0] == 201
            self.jobs[number] = answer[1]
        return answer

    def dismiss(self, number):
        answer = self.served.ask("DELETE", f"/jobs/{self.jobs[number]}")
        if answer is not None:  # 409: a worker was faster, 202: it runs
            assert answer[0] in (200, 202, 409), answer
            self.dismissed.add(self.jobs[number])
        return answer

    def look(self, number):
        answer = self.served.ask("GET", f"/jobs/{self.jobs[number]}")
        if answer is not None:
            assert answer[0] == 200
            assert json.loads(answer[1])["jobID"] == self.jobs[number]
        return answer

    def read(self, number):
        path, expected = list(self.files.items())[number % 2]
        answer = self.served.ask("GET", f"/releases/{self.release.name}/downloads/{path}")
        assert answer in (None, (200, expected))
        return answer


def recorded(site):
    """Return the jobs of a site, but for the one that made its first release."""
    published(site)
    return {job.id: job for job in list_jobs(site.catalog, limit=1000)[:-1]}


def first(site):
    """Return the job that made the first release of a site."""
    return list_jobs(site.catalog, limit=1000)[-1]


def killed_at(served, deed, faults):
    """Kill a service by each fault while it answers, until one is not met; ask again after a restart.

    Return the steps it died at, and the jobs.
    """
    site, client, killed, met = served.site, Client(served, deed), [], True
    for number, fault in enumerate(faults):
        if not met:
            break
        if deed in ("dismiss", "look"):
            client.jobs[number] = site.submit().id
        dies = served.start(*fault)
        answer = getattr(client, deed)(number)
        met = dies.kill().faults
        killed += met
        site.catalog.close()  # then nobody has the database open
        lives = served.start()
        again = getattr(client, deed)(number)
        assert again is not None
        assert answer is None or answer[0] == again[0]
        lives.kill()
        known, expected = recorded(site), "dismissed" if deed == "dismiss" else "accepted"
        assert {known[job].state for job in client.jobs.values()} <= {expected}
    return killed, list(client.jobs.values())


def test_a_service_killed_while_it_answers_does_so_when_it_is_asked_again(forks, serve):
    """At each step of what it records, and at each boundary of what it only tells."""
    served, jobs = serve(), []
    site = served.site
    steps, boundaries = [("kill", number) for number in range(1, 40)], [("kill at", one) for one in ANSWERED]
    for deed in (*RECORDING, *TELLING):
        killed, own = killed_at(served, deed, steps if deed in RECORDING else boundaries)
        for one in RECORDING.get(deed, ANSWERED):
            assert any(step.startswith(one) for step in killed), (deed, killed)
        assert len(recorded(site)) == len(jobs) + len(own)  # each request is one job
        jobs += own
    waiting = [job for job in recorded(site).values() if job.state == "accepted"]
    for job in waiting[2:]:
        dismiss(site.catalog, job.id)
    assert forks.run(directory=site.directory, database=site.database).status == 0, site.log
    finished_once(site, [first(site), *waiting[:2]])
    assert len(spent_on(site)) == 3
    assert "Traceback" not in site.log, site.log


def test_a_service_over_postgresql_killed_at_steps_of_an_answer(serve, postgresql):
    with postgres.database(postgresql) as url:
        served = serve(url)
        for deed in ("submit", "dismiss"):
            killed, jobs = killed_at(served, deed, [("kill", number) for number in range(1, 40, 3)])
            assert len(killed) >= 2
            assert set(jobs) <= set(recorded(served.site))
        served.site.stop()


def test_a_service_killed_at_random_instants_beside_a_worker(forks, serve):
    served = serve()
    site, draw, stopped = served.site, random.Random(4), threading.Event()
    worker = forks.start(directory=site.directory, database=site.database, stays=True)
    clients = [Client(served, f"client-{number}") for number in range(2)]
    with ThreadPoolExecutor(len(clients)) as threads:
        asking = [threads.submit(client.go_on, stopped) for client in clients]
        try:
            for _ in range(20):
                assert served.start("after", draw.uniform(0.0, 0.4)).wait().status == -signal.SIGKILL
                recorded(site)
        finally:
            stopped.set()
            service = served.start()
        for one in asking:
            one.result()
    assert all(client.unanswered >= 10 for client in clients)
    jobs = [site.wait(job, *FINAL) for job in recorded(site).values()]
    assert {job.id for job in jobs} == {job for client in clients for job in client.jobs.values()}
    done = [job for job in jobs if job.state == "successful"]
    assert {job.id for job in jobs} - {job.id for job in done} <= clients[0].dismissed | clients[1].dismissed
    assert len(done) >= 2
    served.stop(service)
    assert worker.kill(signal.SIGTERM).status == 0, site.log
    assert set(published(site)) == {job.release for job in [first(site), *done]}
    spent = spent_on(site)
    assert all(spent[job.release] == ["release", "drawing"] for job in done)
    assert all(spent.get(job.release, []) in ENDS_OF_DISMISSED for job in jobs if job not in done)
    assert left(site) == []
    assert "Traceback" not in site.log, site.log


def test_a_request_is_one_job_and_one_loss_whichever_of_two_services_takes_it_and_dies(forks, serve):
    stays, draw, asked, unanswered = serve(), random.Random(1), [], 0
    site = stays.site
    living = stays.start()
    dies = Served(forks, site, stays.secret)
    with ThreadPoolExecutor(4) as threads:
        for killed in range(4):
            dying = dies.start()
            both = list(threads.map(lambda one, name=f"both-{killed}": one.submit(name), [stays, dies] * 2))
            assert {status for status, _ in both} == {201}
            assert len({job for _, job in both}) == 1
            asked.append(both[0][1])
            names = [f"killed-{killed}-{i}" for i in range(4)]
            answers = [threads.submit(dies.submit, name) for name in names]
            time.sleep(killed * draw.uniform(0, 0.02))  # at first at once
            dying.kill()
            for name, answer in zip(names, [one.result() for one in answers], strict=True):
                status, job = stays.submit(name)
                assert status == 201
                assert answer in (None, (201, job))
                unanswered += answer is None
                asked.append(job)
            assert dies.submit("nobody") is None
    assert unanswered > 0
    assert set(recorded(site)) == set(asked)
    for job in asked[2:]:
        assert stays.ask("DELETE", f"/jobs/{job}")[0] == 200
    stays.stop(living)
    assert forks.run(directory=site.directory, database=site.database).status == 0, site.log
    finished_once(site, [first(site), *(site.job(recorded(site)[job]) for job in asked[:2])])
    assert len(spent_on(site)) == 3
