"""The nearest known name, for errors that tell what was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

#: characters beyond which a name is like no other, and comparing would only take time
_MAX_NAME = 200


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when none is alike."""
    if len(name) > _MAX_NAME:
        return None
    candidates = list(known)
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A half sentence for the end of an error: what was probably meant, else what there is."""
    candidates = sorted(known)
    meant = nearest(name, candidates)
    return f"did you mean {meant}?" if meant else all_of(candidates)


def all_of(known: Iterable[str]) -> str:
    """A half sentence that lists what there is, where the nearest name would be a guess at what is to be done."""
    candidates = sorted(known)
    return f"known: {', '.join(candidates)}" if candidates else "there are none"


def singular(entity_id: str) -> str:
    """The word for one record of an entity: `ticket` of `tickets`, `company` of `companies`."""
    if entity_id.endswith("ies"):
        return f"{entity_id[:-3]}y"
    if entity_id.endswith(("uses", "sses", "ches", "shes", "xes")):
        return entity_id[:-2]
    return entity_id[:-1] if entity_id.endswith("s") and not entity_id.endswith("ss") else entity_id
