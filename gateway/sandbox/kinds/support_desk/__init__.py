"""The support desk of the sandbox: tickets with their comments, bulk jobs, exports and files."""
