"""The applications' limits: how many requests may be under way for an account, and how many go out in a time."""
