"""The work management of the sandbox: everything in `data`, compact unless more is asked for."""
