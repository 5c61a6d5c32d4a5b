"""The process that carries out one job: ``python -m pipelines.jobs``, started by the worker.

It reads its order from standard input and ends when that is closed: the worker is gone then. It tells progress and
the outcome through the pipe that the order names.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any, TextIO

from pipelines.interrupts import end_on
from pipelines.jobs.order import Order, Progress, read_order

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# per cent at which the stages of a release begin; how they move follows from public numbers only
_BEGINS = {"zones": 0, "read": 5, "collect": 25, "lengths": 32, "plan": 35, "draw": 60, "publish": 90}
_ENDS = dict(zip(_BEGINS, [*list(_BEGINS.values())[1:], 99], strict=True))


def main() -> int:
    """Carry out the job and return 0 if it has a result."""
    end_on(*_SIGNALS)
    order = read_order(sys.stdin.readline())
    threading.Thread(target=_end_with_the_worker, args=[order.grace_seconds], daemon=True).start()
    os.set_inheritable(order.events, False)
    with os.fdopen(order.events, "w", encoding="utf-8") as events:
        try:
            tell(events, result=carry_out(order, _teller(events)))
        except KeyboardInterrupt:
            return 130
        except Exception as fault:
            tell(events, **_described(fault))
            return 1
    return 0


def carry_out(order: Order, progress: Progress) -> dict[str, Any]:
    """Return the result of a job."""
    from synthmap.catalog.claims import held
    from synthmap.catalog.database import open_catalog
    from synthmap.catalog.inputs import checked_inputs

    catalog = open_catalog(order.database)
    try:
        claim = held(catalog, order.job, order.attempt)
        checked_inputs(claim.job.process, claim.job.inputs)
        return _process(claim.job.process)(order, claim, catalog, progress)  # type: ignore[no-any-return]
    finally:
        catalog.close()


def _process(name: str) -> Any:
    """Return the function that carries out a process; each needs libraries that the others do without."""
    if name == "release":
        from pipelines.jobs.release import run as release

        return release
    if name == "evaluate":
        from pipelines.jobs.evaluate import run as evaluate

        return evaluate
    from pipelines.jobs.export import run as export

    return export


def _described(fault: Exception) -> dict[str, Any]:
    """Return the public message and the line for the log; foreign exceptions may quote confidential data."""
    from pipelines.jobs.messages import may_pass, public_message
    from pipelines.stage import describe
    from synthmap.errors import SynthmapError

    text = str(fault) if isinstance(fault, SynthmapError) else describe("job", fault)
    log = f"{type(fault).__name__}: {' '.join(text.split())}"
    return {"message": public_message(fault), "log": log, "again": may_pass(fault)}


def _teller(events: TextIO) -> Progress:
    """Return a progress callback that writes to `events`."""

    def progress(stage: str, done: int, total: int) -> None:
        share = done / max(total, 1)
        begin, end = _BEGINS.get(stage, 0), _ENDS.get(stage, 99)
        tell(events, stage=stage, percent=int(begin + share * (end - begin)))

    return progress


def tell(events: TextIO, **event: Any) -> None:
    """Write an event as a line of JSON."""
    events.write(json.dumps(event) + "\n")
    events.flush()


def _end_with_the_worker(grace_seconds: float) -> None:
    """Wait for the worker's death; then clean up as when stopped, and end with all that was started here."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_seconds)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
