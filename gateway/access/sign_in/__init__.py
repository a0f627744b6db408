"""Signs people in through the operator's OpenID Connect provider: authorization code with PKCE, and ID tokens."""
