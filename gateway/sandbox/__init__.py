"""A stateful stand-in for every kind of application, driven by the specs, for trying the gateway without an account.

It proves nothing about the real applications; what goes over the wire to them is checked elsewhere.
"""
