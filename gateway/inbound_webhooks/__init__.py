"""Webhooks in: applications' notices of changes, verified, stored once, and followed by a synchronization."""
