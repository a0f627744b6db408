"""The engine: specs in, HTTP calls out; knows nothing of the gateway but its errors."""
