"""Organizations, the clients that act for them, and the clients' tokens."""
