"""People and groups that a provider adds, changes and removes by SCIM 2.0 (RFC 7643, 7644)."""
