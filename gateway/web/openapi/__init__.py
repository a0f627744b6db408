"""The OpenAPI document of the HTTP contract."""
