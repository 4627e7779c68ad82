"""How alembic runs the migrations: on the connection it is handed, in the caller's transaction."""

from alembic import context

from collector.storage.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    compare_type=True,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
