"""OAuth 2.0: consent, apps, and tokens that are renewed once however many ask."""
