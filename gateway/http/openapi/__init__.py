"""The OpenAPI document: the HTTP contract as programs read it."""
