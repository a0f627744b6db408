"""Calls that wait until a person approves the exact requests."""
