"""The Model Context Protocol: messages, dispatch and transports, whatever tools a server registers."""
