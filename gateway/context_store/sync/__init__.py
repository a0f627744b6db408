"""The synchronization of the copy: when, from where, and how far it has come."""
