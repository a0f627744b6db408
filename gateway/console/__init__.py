"""The console: people who are signed in, and forms made of schemas."""
