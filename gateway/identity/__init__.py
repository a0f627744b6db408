"""Organizations, the clients that act for them, and the tokens that prove it."""
