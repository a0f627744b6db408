"""Imports OpenAPI documents as kinds: reads, corrects with overlays, maps to specs, writes as YAML, compares."""
