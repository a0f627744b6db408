"""What running an operation twice would do, judged by method and name; a doubt is never a read. Pure.

RFC 9110 §9.2: GET and HEAD are safe, PUT and DELETE idempotent; POST and PATCH are neither.
"""

from gateway.contract.kinds import Effect
from gateway.spec_import.model import Finding, NotMapped, SourceOperation, guessed
from gateway.spec_import.names import first_verb, path_names, path_words, spoken_verbs
from gateway.spec_import.verbs import CHANGING, LOOKING, ONCE, PURELY_CHANGING, READING, VERBS, plain_verb
from gateway.spec_import.words import words

#: last segments of paths of what only looks something up
_LOOKED_UP = frozenset({"search", "query", "_search", "_query", "lookup"})
#: content that says what to add and remove, which twice is not once (RFC 6902)
_PATCH = "application/json-patch+json"
#: content that replaces members of a resource, so that twice is once (RFC 7396)
_MERGE_PATCH = "application/merge-patch+json"


def effect_of(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    """The effect and what is not sure about it; raises NotMapped for a GET that seems to change something."""
    match operation.method:
        case "GET":
            return _of_get(operation)
        case "PUT" | "DELETE":
            return _of_put(operation)
        case "PATCH" if operation.body is not None and operation.body.content_type == _MERGE_PATCH:
            return Effect.IDEMPOTENT, []
    if is_lookup(operation):
        reason = "a POST that is a search by its path and its name is taken as a read"
        return Effect.READ, [guessed(operation, reason, member="effect")]
    return Effect.WRITE, []


def _of_get(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    said = _changes(operation)
    if said is not None:
        raise NotMapped("a GET whose name says that it changes something", said)
    return Effect.READ, []


def _changes(operation: SourceOperation) -> str | None:
    """The word by which a GET seems to change something."""
    names = path_names(operation.path)
    last = words(names.verb or "") or path_words(operation.path)
    is_alone = names.verb is not None or (names.groups[-1:] and names.groups[-1][-1:] == tuple(last))
    of_id = spoken_verbs(operation.operation_id)
    if any(word in PURELY_CHANGING for word in last[:1]) and (is_alone or not READING.intersection(of_id)):
        return last[0]
    if names.verb:
        verbs = [verb for verb in map(plain_verb, last) if verb]
        if not READING.intersection(verbs):
            said = [*verbs, *(word for word in last if word.endswith("ed"))]
            if said:
                return said[0]
    of_summary = [verb for verb in first_verb(operation.summary) if verb in CHANGING]
    if of_summary:
        return of_summary[0]
    if READING.intersection(of_id):
        return None
    if "oauth" in (each for group in names.groups for name in group for each in words(name)):
        return "oauth"
    verbs = of_id or first_verb(operation.description) or last[:1]
    return next((verb for verb in verbs if verb in CHANGING), None)


def _of_put(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    if operation.method == "DELETE":
        return Effect.IDEMPOTENT, []
    verbs = {*spoken_verbs(operation.operation_id), *first_verb(operation.summary), *path_words(operation.path)}
    said = words(operation.operation_id) or words(operation.summary)
    repeated = sorted(verb for verb in verbs if verb in ONCE)
    if said[:1] == ["create"] and "update" not in said and not path_names(operation.path).ends_with_param:
        repeated.append("create")
    if operation.body is not None and operation.body.content_type == _PATCH:
        repeated.append(_PATCH)
    if not repeated:
        return Effect.IDEMPOTENT, []
    reason = "a PUT that may do something anew each time is taken as a write"
    return Effect.WRITE, [guessed(operation, reason, repeated[0], member="effect")]


def is_lookup(operation: SourceOperation) -> bool:
    """Whether a POST only looks something up: its path ends so, and its name begins so."""
    static = [part for part in operation.path.split("/") if part and "{" not in part]
    last = static[-1].lower().rpartition(":")[2] if static and operation.path.rstrip("/").endswith(static[-1]) else ""
    said = words(operation.operation_id.rpartition("/")[2]) or words(operation.summary)
    is_said = bool(said) and (said[0] in LOOKING or (said[0] not in VERBS and said[-1] in LOOKING))
    return operation.method == "POST" and last in _LOOKED_UP and is_said
