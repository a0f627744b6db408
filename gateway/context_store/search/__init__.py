"""The search of the copy: parses a query, plans it as SQL and returns pages."""
