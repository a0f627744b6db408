"""Moves an organization to another database: exports everything that it has to one sealed file, and imports it."""
