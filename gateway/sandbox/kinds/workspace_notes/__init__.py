"""The workspace notes of the sandbox: pages of blocks with comments, found by search."""
