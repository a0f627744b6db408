"""Pages for people: templates, style and scripts of our own, under a strict Content-Security-Policy."""
