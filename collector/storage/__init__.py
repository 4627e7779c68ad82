"""The database: tables, transactions and one repository per area.

Open it with :func:`collector.storage.engine.open_database`; every function of a repository
takes the connection of one transaction, so that a unit of work commits at its edge.
"""
