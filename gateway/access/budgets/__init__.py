"""What clients, people and workspaces may use in an hour, a day or a month."""
