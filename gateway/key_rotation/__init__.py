"""Key rotation: every stored data key is wrapped again with the newest key."""
