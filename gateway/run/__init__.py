"""Opens the services of a process and connects them; the only room that knows all others."""
