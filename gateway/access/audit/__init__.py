"""The audit log: who did what, when, with which outcome."""
