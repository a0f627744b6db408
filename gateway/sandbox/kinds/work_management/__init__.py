"""The work management of the sandbox: everything in `data`, compact unless the caller requests more."""
