"""The services of a process in bundles that build on each other: stores, engine, worker, front end.

A bundle has the members of those below it. One function opens each bundle; the bundles close in reverse order.
"""
