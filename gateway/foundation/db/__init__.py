"""PostgreSQL: the pool, notifications and migrations."""
