"""Long-running operations: the application runs them, the gateway starts them and polls until they end."""
