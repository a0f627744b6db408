"""Encryption of stored secrets: key list, data keys, sealed texts."""
