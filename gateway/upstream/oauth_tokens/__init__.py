"""OAuth 2.0 tokens without a database: token requests and responses, and renewal in memory."""
