"""Connect links: pages at which a person connects an application, once, for a program that must not see the key."""
