"""Jobs: work that outlives the call that asked for it. The truth is in PostgreSQL, Redis only wakes workers."""
