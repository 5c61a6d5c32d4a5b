"""Process ``export``: a release in formats to download, for those too large to be made while a reader waits."""

from typing import Any

from pipelines.jobs.order import Order, Progress
from pipelines.leftovers import EXPORTS
from synthmap.catalog.claims import Claim
from synthmap.catalog.database import Catalog
from synthmap.errors import NotFoundError, QueryError
from synthmap.published.store import ReleaseStore


def run(order: Order, claim: Claim, catalog: Catalog, progress: Progress) -> dict[str, Any]:
    """Return the names of the files that were written. They hold nothing that the release does not."""
    from synthmap.published.exports import export, named, place  # libraries that the other processes do without

    opened = ReleaseStore(order.store).open(claim.job.inputs["release"])
    try:
        files = named(opened, claim.job.inputs["formats"])
    except NotFoundError as fault:
        raise QueryError(str(fault)) from None
    for done, name in enumerate(files):
        progress("export", done, len(files))
        export(opened, place(order.store / EXPORTS, opened), name)
    return {"release": opened.id, "files": files}
