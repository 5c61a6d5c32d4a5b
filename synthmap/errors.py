"""Every error a user can cause or meet, under one root.

A message has the form ``name (value) must be condition`` and then says what to do. About confidential
input it names the file, the column and the rule, and public ids only: never a count, a row or any other
value that is secret.
"""


class SynthmapError(Exception):
    """Root of all errors raised on purpose by synthmap."""


class ConfigurationError(SynthmapError):
    """A setting or a spec is missing, unknown or contradictory."""


class PrivacyParameterError(SynthmapError):
    """A privacy parameter is out of range, or no noise level meets it."""


class BudgetExceededError(SynthmapError):
    """A request would cost more than the budget that is left."""


class LedgerError(SynthmapError):
    """The ledger does not allow what was asked, or was damaged; nothing is released on it."""


class BudgetMissingError(LedgerError):
    """A dataset has no privacy budget yet."""


class AlreadyShownError(LedgerError):
    """What was drawn for a loss may have been shown: nothing more is drawn for it."""


class GeographyError(SynthmapError):
    """Zones, their hierarchy or their coordinates are unusable."""


class UnknownZoneError(GeographyError):
    """A zone id occurs in a table but not among the zones."""


class VintageError(GeographyError):
    """Tables or zones of different vintages were mixed."""


class ConfidentialDataError(SynthmapError):
    """A confidential table breaks a rule; the message never shows its content."""


class StorageError(SynthmapError):
    """An object store does not answer, or refuses. It may pass."""


class ReleaseError(SynthmapError):
    """A release cannot be written or read."""


class UnwritableError(ReleaseError):
    """Files cannot be written: a disk is full, or a directory is not the user's. It may pass."""


class ReleaseNotFoundError(ReleaseError):
    """There is no release at the place named."""


class ReleaseCorruptError(ReleaseError):
    """A release does not match its manifest."""


class ExportError(ReleaseError):
    """A file format cannot hold a release."""


class CatalogError(SynthmapError):
    """The catalog (jobs, keys, datasets) cannot be reached or is of another version."""


class NotFoundError(SynthmapError):
    """Nothing of that name is there: a dataset, a job, a collection, a zone, a file to download."""


class QueryError(SynthmapError):
    """A question to published tables is malformed; the message names the parameter."""


class JobFinishedError(QueryError):
    """What was asked of a job is only possible before its end."""


class RepeatedError(QueryError):
    """A request was sent again under the same name but asks for something else."""
