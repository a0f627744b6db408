"""The documentation at `/docs`: the Markdown of docs/, API, kinds and errors, with a search."""
