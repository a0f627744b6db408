"""The message for a task that no operation does."""

from collections.abc import Sequence

from gateway.kinds.catalog import Kind
from gateway.kinds.find.confidence import Candidate, is_named, subject, wants_write
from gateway.kinds.find.corpus import Corpus
from gateway.kinds.find.questions import Question
from gateway.kinds.find.verbs import WRITES

NOTHING = "No matching operations. Try different words."

#: actions as verbs in the third person
_DOES = {"create": "creates", "update": "changes", "delete": "deletes"}
#: maximum entities in a message
_ENTITIES = 12


def message_for(question: Question, found: Sequence[Candidate], kinds: frozenset[str], corpus: Corpus) -> str:
    """`HubSpot: crm-records has no operation that creates deals; deals: list, get, api_search`.

    `kinds` are those that a parameter or the question names; without them the message is less specific.
    """
    about = subject(found) if found else None
    if about is not None and (not kinds or about.operation.entity[0] in kinds) and is_named(question, about):
        kind, entity_id = about.operation.entry.kind, about.operation.entry.entity_id
        actions = [*kind.entity(entity_id).actions]
        does = _that_does(question, actions)
        return f"{_has_no_operation(kind)} {does} {entity_id}; {entity_id}: {', '.join(actions)}"
    if len(kinds) == 1:
        kind = corpus.catalog.kind(*kinds)
        entities = [*kind.spec.entities]
        shown = ", ".join(entities[:_ENTITIES]) + (", …" if len(entities) > _ENTITIES else "")
        return f"{_has_no_operation(kind)} for this; it has {shown}"
    return NOTHING


def _has_no_operation(kind: Kind) -> str:
    return f"{kind.spec.application}: {kind.name} has no operation"


def _that_does(question: Question, actions: Sequence[str]) -> str:
    """A relative clause with the wanted action, if it is certain and the entity does not have it."""
    if not wants_write(question):
        return "for this with"
    certain = sorted(question.verbs.values(), key=lambda verb: -verb.weight)
    meanings = certain[0].meanings & WRITES if certain else frozenset(["create"])
    wanted = [does for action, does in _DOES.items() if action in meanings]
    if not meanings.isdisjoint(actions):
        return "for this with"
    return f"that {wanted[0]}" if len(wanted) == 1 else "that changes"
