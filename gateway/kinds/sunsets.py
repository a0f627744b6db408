"""Parts of an application that will be switched off, the date, and their replacement: pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from email.utils import format_datetime

from gateway.errors import GatewayError, ReauthorizationRequired
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.authentication import Deprecation, PathDeprecation
from gateway.kinds.spec import ConnectorSpec


def method_sunset(spec: ConnectorSpec, auth_method: str | None) -> Deprecation | None:
    """The deprecation of an authentication method; None for a method without `sunset`."""
    method = spec.authentication.get(auth_method or "")
    return method if method is not None and method.sunset is not None else None


def call_sunsets(
    spec: ConnectorSpec, auth_method: str | None, path: str | None = None, operation: str | None = None
) -> list[Deprecation]:
    """The deprecations that concern a call: that of its authentication method, those of its path and its operation."""
    own = method_sunset(spec, auth_method)
    sunsets: list[Deprecation] = [] if own is None else [own]
    if path is not None:
        sunsets += [each for each in spec.deprecations if _concerns(each, path, operation)]
    return sunsets


def _concerns(deprecation: PathDeprecation, path: str, operation: str | None) -> bool:
    return operation in deprecation.operations or bool(deprecation.path and path.startswith(deprecation.path))


def described_sunset(spec: ConnectorSpec, auth_method: str | None, today: date | None = None) -> str | None:
    """A sentence with the sunset and the replacement of an authentication method, or None."""
    sunset = method_sunset(spec, auth_method)
    if sunset is None or sunset.sunset is None:
        return None
    title = spec.authentication[auth_method or ""].title
    return f"{title} {_sentence(spec, sunset, today)}"


def explain_refusal(error: GatewayError, spec: ConnectorSpec, auth_method: str | None) -> None:
    """Add the sunset of the authentication method to a refusal of credentials, if there is one; once only."""
    if not isinstance(error, ReauthorizationRequired):
        return
    sunset = described_sunset(spec, auth_method)
    if sunset is not None and sunset not in error.detail:
        error.detail = f"{error.detail}; {sunset}"


def all_sunsets(spec: ConnectorSpec, today: date | None = None) -> Iterator[tuple[str | None, str]]:
    """Every sunset of a kind with its date: the authentication method, None for all of them, and a sentence."""
    for name in spec.authentication:
        sentence = described_sunset(spec, name, today)
        if sentence is not None:
            yield name, sentence
    for each in spec.deprecations:
        if each.sunset is not None:
            yield None, f"{_subject(each)} {_sentence(spec, each, today)}"


def undated_deprecations(spec: ConnectorSpec) -> Iterator[str]:
    """A sentence for each part of the application that is deprecated and has no date yet at which it ends."""
    for each in spec.deprecations:
        if each.sunset is None:
            since = f" since {each.deprecated.isoformat()}" if each.deprecated else ""
            yield f"{_subject(each)}: deprecated{since}" + (
                f"; use {each.replacement} instead" if each.replacement else ""
            )


def _subject(deprecation: PathDeprecation) -> str:
    return deprecation.path or ", ".join(deprecation.operations)


def _sentence(spec: ConnectorSpec, sunset: Deprecation, today: date | None) -> str:
    assert sunset.sunset is not None
    verb = "ended" if (today or CLOCK.now().date()) >= sunset.sunset else "ends"
    successor = spec.authentication.get(sunset.replacement or "")
    instead = f"{successor.title} ({sunset.replacement})" if successor else sunset.replacement
    return f"{verb} on {sunset.sunset.isoformat()}" + (f"; use {instead} instead" if instead else "")


def sunset_headers(sunsets: Sequence[Deprecation]) -> dict[str, str]:
    """The headers `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` for the earliest sunset, else for any other
    deprecation."""
    if not sunsets:
        return {}
    first = min(sunsets, key=lambda each: each.sunset or date.max)
    since, relations, headers = first.deprecated or first.sunset, ["deprecation"], {}
    if since is not None:
        headers["Deprecation"] = f"@{int(_midnight(since).timestamp())}"
    if first.sunset is not None:
        headers["Sunset"] = format_datetime(_midnight(first.sunset), usegmt=True)
        relations.append("sunset")
    if first.documentation_url is not None:
        headers["Link"] = ", ".join(f'<{first.documentation_url}>; rel="{relation}"' for relation in relations)
    return headers


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
