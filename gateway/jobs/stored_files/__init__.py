"""Files of jobs, kept in a folder or a bucket until their job's result expires."""
