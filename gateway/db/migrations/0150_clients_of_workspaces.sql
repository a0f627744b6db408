-- A client may be limited to workspaces: everything outside of them answers as if it did not exist.
ALTER TABLE clients ADD COLUMN workspaces text[];
