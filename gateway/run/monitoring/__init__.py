"""Prometheus metrics, statistics from PostgreSQL, and health checks."""
