"""The context store: a synchronized copy of an application's records in Postgres, and the language to search it.

What a filter means is told in `filters`; how Postgres answers it in `sql`; how records are laid out in `layout`.
"""
