"""The authorization server for agents' hosts: OAuth 2.1 codes with PKCE, bound to the resource they are asked for."""
