"""Kinds that administrators import in the console: drafts, their review, and the kinds that every process serves."""
