"""Signing people in by the operator's OpenID Connect provider: authorization code with PKCE, ID tokens, their keys."""
