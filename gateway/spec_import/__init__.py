"""OpenAPI documents as kinds: read, corrected by an overlay, mapped to specs, written as YAML, compared."""
