"""Connector records with their sealed credentials: stores, checks and resolves them."""
