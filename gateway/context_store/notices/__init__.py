"""Inbound webhooks: verifies applications' notices of changes, stores each once, and synchronizes the records."""
