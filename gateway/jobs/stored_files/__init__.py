"""Files of jobs, stored in a folder or a bucket until their job's result expires."""
