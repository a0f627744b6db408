"""Pages for people: templates, style and scripts, under a strict Content-Security-Policy."""
