"""Uploads that a caller may resume after its connection broke, for applications with upload sessions."""
