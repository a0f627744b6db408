"""The gateway's tools for agents: six that reach every operation, or one for each; the same hosted and in process."""
