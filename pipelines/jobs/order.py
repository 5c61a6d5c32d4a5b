"""What a worker tells the process that carries a job out; through a pipe, so that no list of processes shows it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Order:
    """A claimed job and where everything lies.

    Attributes
    ----------
    database : str
        URL of the catalog.
    store, registry : Path
    scheduler : str
        See `pipelines.cluster.connect`.
    job : str
    attempt : int
        The fencing token of the claim.
    events : int
        File descriptor to which progress and the outcome are written, one JSON object a line.
    grace_seconds : float
        How long to clean up once the worker is gone.
    """

    database: str
    store: Path
    registry: Path
    scheduler: str
    job: str
    attempt: int
    events: int
    grace_seconds: float

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self), default=str)


def read_order(line: str) -> Order:
    """Return the order in a line of JSON."""
    values = json.loads(line)
    return Order(**values | {"store": Path(values["store"]), "registry": Path(values["registry"])})
