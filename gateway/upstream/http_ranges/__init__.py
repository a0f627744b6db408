"""Ranges, conditions, multipart and integrity of files over HTTP (RFC 9110); pure."""
