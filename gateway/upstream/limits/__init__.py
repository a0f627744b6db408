"""Enforces the applications' limits: concurrent requests and requests per time window, for each account."""
