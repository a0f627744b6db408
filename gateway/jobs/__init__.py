"""Jobs: work that outlives the request that created it. PostgreSQL stores it; Redis only wakes workers."""
