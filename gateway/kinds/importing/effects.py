"""Determines the effect of an operation from its method and name; an uncertain one is never a read. Pure.

RFC 9110 §9.2: GET and HEAD are safe, PUT and DELETE idempotent; POST and PATCH are neither.
"""

import re
from collections.abc import Iterator

from gateway.contract.kinds import Effect
from gateway.kinds.importing.model import Finding, SourceOperation, guessed
from gateway.kinds.importing.names import first_verb, path_names, path_words, spoken_verbs
from gateway.kinds.importing.verbs import CHANGING, LOOKING, ONCE, PURELY_CHANGING, READING, VERBS, plain_verb
from gateway.kinds.importing.words import words

#: words about the HTTP request itself
_OF_HTTP = re.compile(
    r"send(s|ing)?\s+(an?|the|your|this)?\s*`?(put|post|patch|http|api)?`?\s*requests?|to send (in|as|with)"
    r"|\b(in|of|with|put|post|patch|http|api|this|the|your|each|same|subsequent)`? (the |your |a )?requests?"
    r"|requests? (body|payload|headers?|params?|parameters?|object|url|schema|data)",
    re.I,
)
_OBJECT = r"(?=\s+(?:an?|the|your|their|its|this|that|all|each|it|them|customers?|users?|cards?|people|e-?mails?)\b)"
_ACTS = (
    "send|resend|charge|pay|publish|notify|invite|request|duplicate|deduct|email|bill|refund|transfer|trigger|withdraw"
    "|deposit|dispatch|purchase|redeem|renew|retry"
)
#: what a sentence says that an operation does each time: `sends`, `and send`, `will be sent`, `charges the card`
_DOES_ONCE = re.compile(
    r"\b(sends|resends|publishes|notifies|invites|deducts|pays)\b"
    rf"|\b(charges|requests|duplicates|emails|bills|refunds|transfers|triggers|withdraws|renews){_OBJECT}"
    rf"|\b(?:and|then|will|also|to)\s+(?:also\s+|then\s+)?({_ACTS}){_OBJECT}"
    r"|\bwill be (sent|charged|notified|emailed|invited|published|paid|billed|deducted|refunded|transferred)\b",
    re.I,
)
#: first words of names whose last word is a noun
_UPDATING = frozenset({"update", "override", "set", "replace", "edit", "modify", "put", "upsert", "save", "change"})
#: last segments of the paths of lookups
_LOOKUP_SEGMENTS = frozenset({"search", "query", "_search", "_query", "lookup"})
#: the media type of lists of changes, which are not idempotent (RFC 6902)
_PATCH = "application/json-patch+json"
#: the media type of replaced members, which is idempotent (RFC 7396)
_MERGE_PATCH = "application/merge-patch+json"


def effect_of(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    """The effect and the findings about it."""
    match operation.method:
        case "GET":
            return _of_get(operation)
        case "PUT" | "DELETE":
            return _of_put(operation)
        case "PATCH" if operation.body is not None and operation.body.content_type == _MERGE_PATCH:
            return _of_put(operation)
    if is_lookup(operation):
        reason = "a POST that is a search by its path and its name is mapped as a read"
        return Effect.READ, [guessed(operation, reason, member="effect")]
    return Effect.WRITE, []


def _of_get(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    verb = _changing_verb(operation)
    if verb is None:
        return Effect.READ, []
    reason = "a GET whose name says that it changes something is mapped as a write"
    return Effect.WRITE, [guessed(operation, reason, verb, member="effect")]


def _changing_verb(operation: SourceOperation) -> str | None:
    """The word that suggests that a GET changes something, or None."""
    names = path_names(operation.path)
    last = words(names.verb or "") or path_words(operation.path)
    is_alone = names.verb is not None or (names.groups[-1:] and names.groups[-1][-1:] == tuple(last))
    of_id = spoken_verbs(operation.operation_id)
    if any(word in PURELY_CHANGING for word in last[:1]) and (is_alone or not READING.intersection(of_id)):
        return last[0]
    if names.verb:
        verbs = [verb for verb in map(plain_verb, last) if verb]
        if not READING.intersection(verbs):
            changing = [*verbs, *(word for word in last if word.endswith("ed"))]
            if changing:
                return changing[0]
    of_summary = [verb for verb in first_verb(operation.summary) if verb in CHANGING]
    if of_summary:
        return of_summary[0]
    if READING.intersection([*of_id, *first_verb(operation.summary)]):
        return None
    if "oauth" in (each for group in names.groups for name in group for each in words(name)):
        return "oauth"
    verbs = of_id or first_verb(operation.description) or last[:1]
    return next((verb for verb in verbs if verb in CHANGING), None)


def _of_put(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    if operation.method == "DELETE":
        return Effect.IDEMPOTENT, []
    said = {*first_verb(operation.summary), *first_verb(operation.description), *_said(operation)}
    spoken = spoken_verbs(operation.operation_id)
    own = spoken[:1] if _UPDATING.intersection(spoken[:1]) else spoken  # "charge" is a noun in updateCharge
    verbs = {*own, *said, *path_words(operation.path)}
    name = words(operation.operation_id) or words(operation.summary)
    not_idempotent = sorted(verb for verb in verbs if verb in ONCE)
    if name[:1] == ["create"] and "update" not in name and not path_names(operation.path).ends_with_param:
        not_idempotent.append("create")
    if operation.body is not None and operation.body.content_type == _PATCH:
        not_idempotent.append(_PATCH)
    if not not_idempotent:
        return Effect.IDEMPOTENT, []
    reason = f"a {operation.method} that may not be idempotent is mapped as a write"
    return Effect.WRITE, [guessed(operation, reason, not_idempotent[0], member="effect")]


def _said(operation: SourceOperation) -> Iterator[str]:
    """The verbs of `ONCE` that sentences of the summary and the description say of the operation."""
    text = _OF_HTTP.sub(" ", f"{operation.summary}. {operation.description}")
    for found in _DOES_ONCE.finditer(text):
        verb = plain_verb(next(filter(None, found.groups())).lower())
        yield verb if verb in ONCE else "send"


def is_lookup(operation: SourceOperation) -> bool:
    """Whether a POST only looks something up: both its path and its name say so."""
    static = [part for part in operation.path.split("/") if part and "{" not in part]
    last = static[-1].lower().rpartition(":")[2] if static and operation.path.rstrip("/").endswith(static[-1]) else ""
    name = words(operation.operation_id.rpartition("/")[2]) or words(operation.summary)
    is_named_so = bool(name) and (name[0] in LOOKING or (name[0] not in VERBS and name[-1] in LOOKING))
    return operation.method == "POST" and last in _LOOKUP_SEGMENTS and is_named_so
