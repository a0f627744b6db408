"""Key rotation: wraps every stored data key with the newest key."""
