"""Logs, metrics, traces and load of a process."""
