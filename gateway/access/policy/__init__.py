"""Policies in Cedar: what callers may do beyond their scopes."""
