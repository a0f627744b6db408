"""Errors with the words of RFC 7644 §3.12."""

from gateway.errors import Conflict, MalformedRequest


def refused(scim_type: str, detail: str) -> MalformedRequest:
    """A 400 with this `scimType`, such as `invalidValue`."""
    return MalformedRequest(detail, extra={"scim_type": scim_type})


def taken(detail: str) -> Conflict:
    """A 409 for a value that must be unique."""
    return Conflict(detail, extra={"scim_type": "uniqueness"})
