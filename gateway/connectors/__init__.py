"""Connector records with their sealed credentials: stored, checked and resolved."""
