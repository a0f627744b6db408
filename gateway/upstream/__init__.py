"""The engine: turns specs into HTTP calls. Of the rest of the gateway it imports only the errors."""
