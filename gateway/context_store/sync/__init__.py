"""The synchronization of the copy: its schedule, its sources and its progress."""
