"""The spec language: what a kind of application is, read from data and explained to people, editors and agents."""
