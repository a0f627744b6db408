"""The team chat of the sandbox: methods instead of resources, and errors with status 200."""
