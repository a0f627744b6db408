"""A stateful stand-in for every kind of application, driven by the specs, for trying the gateway without an account.

It proves nothing about the real applications; `tests/upstream/kinds` checks the requests that are sent to them.
"""
