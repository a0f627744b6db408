"""The authorization server for agents' hosts: OAuth 2.1 codes with PKCE, bound to the requested resource."""
