"""The documents as a site at `/docs`: the Markdown of docs/, API, kinds and errors, with a search."""
