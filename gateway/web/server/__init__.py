"""The server: connections, admission, middleware."""
