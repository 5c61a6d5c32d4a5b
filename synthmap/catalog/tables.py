"""The catalog's tables. Migrations make them; a test compares the two."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """A point in time, always with its zone (UTC), also where the database keeps none. For people: no rule reads it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the value to store, in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored value with its zone."""
        return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """What all tables share."""

    metadata = MetaData(
        naming_convention={"pk": "pk_%(table_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s",
                           "ck": "ck_%(table_name)s_%(constraint_name)s", "ix": "ix_%(table_name)s_%(column_0_name)s"}
    )  # fmt: skip


class JobRow(Base):
    """A job: what was asked (public), how far it is (public), and who holds it."""

    __tablename__ = "jobs"
    __table_args__ = (
        CheckConstraint("state in ('accepted', 'running', 'successful', 'failed', 'dismissed')", name="state"),
        Index("ix_jobs_state", "state", "number"),
    )

    number: Mapped[int] = mapped_column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True)
    id: Mapped[str] = mapped_column(String(32), unique=True)
    process: Mapped[str] = mapped_column(String(32))
    inputs: Mapped[dict[str, Any]] = mapped_column(JSON)
    owner: Mapped[str | None] = mapped_column(String(64))
    once: Mapped[str | None] = mapped_column(String(64), unique=True)  # hash of the owner's name for the request
    state: Mapped[str] = mapped_column(String(16))
    stage: Mapped[str] = mapped_column(String(32))
    percent: Mapped[int]
    message: Mapped[str] = mapped_column(String(1000))
    release: Mapped[str | None] = mapped_column(String(160))
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created: Mapped[datetime] = mapped_column(Moment)
    started: Mapped[datetime | None] = mapped_column(Moment)
    finished: Mapped[datetime | None] = mapped_column(Moment)
    updated: Mapped[datetime] = mapped_column(Moment)
    # who runs it: see claims.py
    attempt: Mapped[int]  # the fencing token, one higher with every claim
    beat: Mapped[int]  # one higher with every sign of life of the worker that holds it
    lease_seconds: Mapped[float] = mapped_column(Float)
    lost: Mapped[int]  # attempts whose worker or process died
    stop: Mapped[bool]  # somebody asked to dismiss it while it ran


class KeyRow(Base):
    """A key of the service: who holds it may do what its role may."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    created: Mapped[datetime] = mapped_column(Moment)
    revoked: Mapped[datetime | None] = mapped_column(Moment)


class DatasetRow(Base):
    """A registered dataset: its public facts only; where it lies stands in the worker's registry."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    title: Mapped[str] = mapped_column(String(1000))
    segments: Mapped[list[str]] = mapped_column(JSON)
    levels: Mapped[list[str]] = mapped_column(JSON)
    vintage: Mapped[str] = mapped_column(String(200))
    registered: Mapped[datetime] = mapped_column(Moment)


class LedgerRow(Base):
    """An entry of the ledger: its text, the text's hash, and what is looked up; see `synthmap.catalog.entries`."""

    __tablename__ = "ledger"

    dataset: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(160))
    body: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(64))


class LedgerHeadRow(Base):
    """How many entries a dataset's ledger has, and the hash of the last: where one that was cut shows."""

    __tablename__ = "ledger_heads"

    dataset: Mapped[str] = mapped_column(String(64), primary_key=True)
    entries: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))
