"""Schedules: operations that run as jobs at the times of a cron expression."""
