"""What the public reads of a job that failed: a fixed text by the class of the error; and which errors may pass by.

An error's own text may hold public ids and the names of confidential files. It goes to the worker's log only.
"""

from pipelines.stage import StageError
from synthmap import errors
from synthmap.catalog.claims import ClaimLostError

_LOG = "the operator finds which in the log of the worker"
_DATASET = f"the dataset breaks a rule; {_LOG}"  # a zone that is unknown in it is told apart in the log only
# the first that fits decides
_TEXTS: tuple[tuple[type[errors.SynthmapError], str], ...] = (
    (errors.BudgetExceededError, "the release would cost more than is left of the dataset's privacy budget"),
    (
        errors.BudgetMissingError,
        "the dataset must have a privacy budget first; its curator sets it: synthmap ledger budget",
    ),
    (
        errors.AlreadyShownError,
        "an earlier attempt may have shown the release, so it is not drawn again; ask for another one",
    ),
    (errors.LedgerError, f"the ledger of the dataset does not allow it; {_LOG}"),
    (errors.PrivacyParameterError, "no noise meets these privacy parameters at every destination; ask for others"),
    (errors.UnknownZoneError, _DATASET),
    (errors.ConfidentialDataError, _DATASET),
    (errors.GeographyError, f"the dataset's zones break a rule; {_LOG}"),
    (errors.ConfigurationError, f"the inputs, the dataset's spec or the worker's settings break a rule; {_LOG}"),
    (errors.ReleaseNotFoundError, "the release must be one of the store's"),
    (errors.ReleaseCorruptError, "the release does not match its manifest; it was damaged"),
    (errors.ExportError, "one of the formats cannot hold this release; ask for others"),
    (errors.NotFoundError, "the dataset must be in the registry of the worker; its operator adds it"),
    (errors.QueryError, "an input must be one of those that the process offers"),
)
_PASSING = (OSError, MemoryError, StageError, errors.UnwritableError, errors.StorageError, errors.CatalogError,
            ClaimLostError)  # fmt: skip
_OTHER = "it could not be carried out; the operator finds why in the log of the worker"


def public_message(fault: BaseException) -> str:
    """Return the text that a job shows for `fault`; it depends on its class only."""
    return next((text for kind, text in _TEXTS if isinstance(fault, kind)), _OTHER)


def may_pass(fault: BaseException) -> bool:
    """Return whether another attempt may succeed: a disk was full, a cluster or the catalog went away, memory ran out.

    A claim that was lost is somebody else's to end; whether it was dismissed shows when the job is given back.
    """
    return isinstance(fault, _PASSING)
