"""Errors in the webhooks of a spec: the signed text, and the entities that the rules name."""

import re
from collections.abc import Iterator

from gateway.kinds.catalog import Kind
from gateway.kinds.lint.schemas import PlacedError
from gateway.kinds.notices import NoticeSpec
from gateway.kinds.paging import HEADER_PATH
from gateway.kinds.suggestions import did_you_mean

#: the names that a signed text may have
_SIGNED = ("body", "timestamp", "delivery_id", "method", "url")


def of_kind(kind: Kind) -> Iterator[PlacedError]:
    """The errors of `webhooks`; none for a kind without webhooks."""
    webhooks = kind.spec.webhooks
    if webhooks is None:
        return
    yield from _signature(webhooks)
    handshake = webhooks.handshake
    if handshake is not None and handshake.style == "challenge" and handshake.path[:1] == (HEADER_PATH,):
        yield ("webhooks", "handshake", "path"), "the challenge is a member of the body; write its path"
    for number, rule in enumerate(webhooks.rules):
        for name in rule.entities:
            entity = kind.spec.entities.get(name)
            if entity is None:
                hint = did_you_mean(name, kind.spec.entities)
                yield ("webhooks", "rules", str(number), "entities"), f"there is no entity {name}; {hint}"
            elif entity.search is None:
                message = f"{name} has no `search`, so it is not synchronized; remove it"
                yield ("webhooks", "rules", str(number), "entities"), message
            elif rule.record_id and entity.record_id_param is None:
                message = f"{name} has no `get` that reads a record of its copy by the id alone; remove it"
                yield ("webhooks", "rules", str(number), "record_id"), message


def _signature(webhooks: NoticeSpec) -> Iterator[PlacedError]:
    place = ("webhooks", "signature", "signed")
    named = set(re.findall(r"\{(\w+)\}", webhooks.signature.signed))
    for name in sorted(named - set(_SIGNED)):
        yield place, f"{{{name}}} is not a part of a notice; {did_you_mean(name, _SIGNED)}"
    if "body" not in named:
        yield place, "lacks {body}: without it, the signature does not cover the content of the notice"
    if "timestamp" in named and webhooks.timestamp is None:
        yield place, "names {timestamp}; add `timestamp`"
    if "delivery_id" in named and not webhooks.delivery_id:
        yield place, "names {delivery_id}; add `delivery_id`"
    for name, path in (
        ("timestamp", webhooks.timestamp and webhooks.timestamp.path),
        ("delivery_id", webhooks.delivery_id),
    ):
        if path and path[0] == HEADER_PATH and name not in named:
            yield ("webhooks", name), f"is in a header that is not signed; add {{{name}}} to `signed`, or remove it"
