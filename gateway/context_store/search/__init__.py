"""The search of the copy: a query read, planned as SQL and answered in pages."""
