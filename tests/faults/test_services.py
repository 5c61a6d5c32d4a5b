"""Two services over one store and one catalog, and one of them killed while it is asked for releases."""

import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import live
import sites
from invariants import finished_once

from synthmap.catalog.jobs import find_job, list_jobs
from synthmap.catalog.keys import Role, add_key


def ask(address, secret, name):
    """Return status and job of a request for a release under an idempotency key; None if nobody answers."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "Idempotency-Key": name}
    try:
        body = json.dumps({"inputs": {"dataset": sites.DATASET, "epsilon": 1.0}})
        connection.request("POST", "/processes/release/execution", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["jobID"]
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def test_a_request_is_one_job_and_one_loss_whichever_service_takes_it_and_dies(forks, make_site):
    site, draw, asked, unanswered = make_site(), random.Random(1), [], 0
    site.store.mkdir(exist_ok=True)
    secret, database = add_key(site.catalog, "test", Role.CURATOR), site.directory / "catalog.sqlite"
    with (
        ExitStack() as stack,
        ThreadPoolExecutor(4) as threads,
        live.killable(site.store, database, site.directory / "stays.log") as (stays, _),
    ):
        for killed in range(3):
            log = site.directory / f"dies-{killed}.log"
            dies, process = stack.enter_context(live.killable(site.store, database, log))
            both = list(threads.map(lambda at, name=f"both-{killed}": ask(at, secret, name), [stays, dies] * 2))
            assert {status for status, _ in both} == {201}
            assert len({job for _, job in both}) == 1
            asked.append(both[0][1])
            names = [f"killed-{killed}-{i}" for i in range(4)]
            first = [threads.submit(ask, dies, secret, name) for name in names]
            time.sleep(killed * draw.uniform(0, 0.03))  # at first at once
            process.kill()
            process.wait()
            for name, answer in zip(names, [one.result() for one in first], strict=True):
                status, job = ask(stays, secret, name)
                assert status == 201
                assert answer in (None, (201, job))
                unanswered += answer is None
                asked.append(job)
            assert ask(dies, secret, "nobody") is None
    assert unanswered > 0
    assert sorted(job.id for job in list_jobs(site.catalog, limit=100)) == sorted(asked)
    assert forks.run(directory=site.directory, database=site.database).status == 0, site.log
    finished_once(site, [find_job(site.catalog, job) for job in asked])
