-- What pruning looks for: results whose time is over, among the rows that stay for a day longer.
CREATE INDEX jobs_with_results ON jobs (expires_at)
    WHERE expires_at IS NOT NULL AND (result IS NOT NULL OR parts > 0);
