"""The gateway's tools for agents: six general tools, or one tool for each operation; hosted and in process."""
