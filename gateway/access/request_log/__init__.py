"""Each HTTP request to an application: written in batches, kept for a day, read by organization."""
