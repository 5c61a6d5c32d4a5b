"""The first tables: jobs, keys and datasets."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "jobs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("process", sa.String(32), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("once", sa.String(64)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(32), nullable=False),
        sa.Column("percent", sa.Integer(), nullable=False),
        sa.Column("message", sa.String(1000), nullable=False),
        sa.Column("release", sa.String(160)),
        sa.Column("result", sa.JSON()),
        sa.Column("created", moment, nullable=False),
        sa.Column("started", moment),
        sa.Column("finished", moment),
        sa.Column("updated", moment, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("beat", sa.Integer(), nullable=False),
        sa.Column("lease_seconds", sa.Float(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
        sa.UniqueConstraint("once", name="uq_jobs_once"),
        sa.CheckConstraint(
            "state in ('accepted', 'running', 'successful', 'failed', 'dismissed')", name=op.f("ck_jobs_state")
        ),
    )
    op.create_index("ix_jobs_state", "jobs", ["state", "number"])
    op.create_table(
        "keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created", moment, nullable=False),
        sa.Column("revoked", moment),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("title", sa.String(1000), nullable=False),
        sa.Column("segments", sa.JSON(), nullable=False),
        sa.Column("levels", sa.JSON(), nullable=False),
        sa.Column("vintage", sa.String(200), nullable=False),
        sa.Column("registered", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
    )
