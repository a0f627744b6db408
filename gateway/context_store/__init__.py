"""The context store: a synchronized copy of an application's records in PostgreSQL, and the language to search it.

`filters` defines what a filter means, `sql` how PostgreSQL evaluates it, `layout` how records are stored.
"""
