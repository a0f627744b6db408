"""The spec language: kinds of applications as data, and their documents for people, editors and agents."""
