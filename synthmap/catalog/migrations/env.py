"""What Alembic runs: the migrations, inside the transaction that the caller began."""

from alembic import context

from synthmap.catalog.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
