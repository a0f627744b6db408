"""The team chat of the sandbox: methods instead of resources, and failures that are a 200."""
