"""HTTP in, one call of the domain, HTTP out."""
