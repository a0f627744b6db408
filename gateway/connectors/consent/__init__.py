"""OAuth 2.0: consent, apps, and renewal of tokens; concurrent callers share one renewal."""
