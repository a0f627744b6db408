"""The authentication methods of a kind as forms. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.errors import FieldError
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Kind

#: words of field names that are written in capitals
_ABBREVIATIONS = frozenset({"api", "id", "url"})
#: before the name of a credential: the field takes a reference to a secret in place of the value
REFERENCE = "secret:"


def methods_of(
    kind: Kind,
    sent: str = "",
    values: Mapping[str, str] | None = None,
    faults: Sequence[FieldError] = (),
    *,
    takes_references: bool = False,
) -> list[dict[str, Any]]:
    """The forms, consent first. `sent` is the method of the form that was sent: its fields have `values` and errors.

    Secrets are not shown again. With `takes_references` each secret has a second field, for a reference to it.
    """
    errors = {fault.field: fault.message for fault in faults}
    methods = sorted(kind.spec.authentication.items(), key=lambda item: not _is_by_consent(kind, *item))
    return [
        _method(
            kind,
            name,
            method,
            (values or {}) if name == sent else {},
            errors if name == sent else {},
            takes_references=takes_references,
        )
        for name, method in methods
    ]


def _is_by_consent(kind: Kind, name: str, method: AuthMethod) -> bool:
    return kind.spec.oauth is not None and name == kind.spec.oauth_method and method.grant_type is None


def _method(
    kind: Kind,
    name: str,
    method: AuthMethod,
    values: Mapping[str, str],
    errors: Mapping[str, str],
    *,
    takes_references: bool,
) -> dict[str, Any]:
    by_consent = _is_by_consent(kind, name, method)
    fields = [
        _field(each, variable.description, values, errors, required=variable.required, default=variable.default)
        | {"example": variable.example or "", "suffix": _suffix_of(kind.spec.server, each)}
        for each, variable in kind.spec.environment.items()
    ]
    if not by_consent:
        fields += [
            _field(each, field.description, values, errors, required=field.required, secret=field.secret)
            | {"is_text": method.assertion is not None and each == method.assertion.key}
            | _reference(each, values, is_offered=takes_references and field.secret)
            for each, field in method.credentials.items()
        ]
    return {
        "id": name,
        "title": method.title,
        "description": method.description,
        "fields": fields,
        "is_open": bool(errors),
        "button": f"Continue to {kind.spec.application}" if by_consent else "Connect",
    }


def _label(name: str) -> str:
    """A field's name for people: `API token` for `api_token`."""
    words = [word.upper() if word in _ABBREVIATIONS else word for word in name.split("_")]
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])


def _field(
    name: str,
    description: str,
    values: Mapping[str, str],
    errors: Mapping[str, str],
    *,
    required: bool,
    secret: bool = False,
    default: str | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "label": _label(name),
        "description": description,
        "required": required and default is None,
        "secret": secret,
        "value": "" if secret else values.get(name, default or ""),
        "error": errors.get(name),
        "example": "",
        "suffix": "",
        "is_text": False,
        "reference": None,
    }


def _reference(name: str, values: Mapping[str, str], *, is_offered: bool) -> dict[str, Any]:
    """The second field of a secret, of which one is enough."""
    if not is_offered:
        return {}
    field = REFERENCE + name
    return {"reference": {"name": field, "value": values.get(field, "")}}


def _suffix_of(server: str, name: str) -> str:
    """The text after a variable in the server's host: `.zendesk.com` of `https://{subdomain}.zendesk.com/api/v2`."""
    found = re.match(rf"https?://{{{re.escape(name)}}}([^/{{]+)", server)
    return found[1] if found else ""
