"""OAuth 2.0 tokens without a database: their messages, what token endpoints answer, and renewal in memory."""
