"""Who may act, and who did: identity, sign-in, the authorization server, the audit log and the request log."""
