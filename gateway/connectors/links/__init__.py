"""Connect links: pages at which a person connects an application for a program that must not see the credentials."""
