"""The Model Context Protocol: messages, dispatch and transports, without any tools."""
