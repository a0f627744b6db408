"""PostgreSQL, which holds the truth: the pool and the migrations."""
