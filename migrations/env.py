"""Run migrations on a connection that is given, in its transaction and with bounded waits."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    message = "run `holdshort migrate`: it gives the connection and holds the lock"
    raise SystemExit(message)

# A migration that cannot have its lock must give up rather than stop the traffic that queues behind it.
connection.exec_driver_sql("SET LOCAL lock_timeout = '4s'")
connection.exec_driver_sql("SET LOCAL statement_timeout = '60s'")
context.configure(connection=connection, transaction_per_migration=False)
context.run_migrations()
