"""What running an operation twice would do, judged by method and name; a doubt is never a read. Pure.

RFC 9110 §9.2: GET and HEAD are safe, PUT and DELETE idempotent; POST and PATCH are neither.
"""

from gateway.contract.kinds import Effect
from gateway.spec_import.model import Finding, NotMapped, SourceOperation, guessed
from gateway.spec_import.names import own_verb, path_words
from gateway.spec_import.verbs import CHANGING, LOOKING, ONCE, PURELY_CHANGING, VERBS
from gateway.spec_import.words import words

#: last segments of paths of what only looks something up
_LOOKED_UP = frozenset({"search", "query", "_search", "_query", "lookup"})
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
    verb = own_verb(operation)
    last = path_words(operation.path)[-1:]
    judged = PURELY_CHANGING if verb else CHANGING
    said = [word for word in last if word in judged] or [word for word in [verb] if word in CHANGING]
    if said:
        raise NotMapped("a GET whose name says that it changes something", said[0])
    return Effect.READ, []


def _of_put(operation: SourceOperation) -> tuple[Effect, list[Finding]]:
    verbs = {own_verb(operation), *path_words(operation.path)[-1:]}
    repeated = sorted(verb for verb in verbs if verb in ONCE)
    if not repeated:
        return Effect.IDEMPOTENT, []
    reason = f"a {operation.method} that may do something anew each time is taken as a write"
    return Effect.WRITE, [guessed(operation, reason, repeated[0], member="effect")]


def is_lookup(operation: SourceOperation) -> bool:
    """Whether a POST only looks something up: its path ends so, and its name begins so."""
    static = [part for part in operation.path.split("/") if part and "{" not in part]
    last = static[-1].lower().rpartition(":")[2] if static and operation.path.rstrip("/").endswith(static[-1]) else ""
    said = words(operation.operation_id.rpartition("/")[2]) or words(operation.summary)
    is_said = bool(said) and (said[0] in LOOKING or (said[0] not in VERBS and said[-1] in LOOKING))
    return operation.method == "POST" and last in _LOOKED_UP and is_said
