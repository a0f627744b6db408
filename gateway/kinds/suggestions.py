"""The nearest known name, for errors that suggest what was probably meant."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from heapq import nlargest

#: characters; a longer name is not compared with the known ones
_MAX_NAME = 200
#: known names that are compared in full; of more, those that begin and end most like the name
_MOST_COMPARED = 200
#: how alike a misspelt word is: `lst` and `list` are, `delete` and `update` are two words
_MISSPELT = 0.8
#: names of one request for which the nearest known name is searched
_MOST_SEARCHES = 5


def nearest(name: str, names: Iterable[str], likeness: float = 0.5) -> str | None:
    """The known name most like `name`, or None when none is alike."""
    if len(name) > _MAX_NAME:
        return None
    by_lower = {candidate.lower(): candidate for candidate in names}
    matches = get_close_matches(name.lower(), _compared(name.lower(), by_lower), n=1, cutoff=likeness)
    return by_lower[matches[0]] if matches else None


def _compared(name: str, candidates: Collection[str]) -> Collection[str]:
    """The candidates that are compared in full, which takes 0.1 ms for each; a catalog has thousands of names."""
    if len(candidates) <= _MOST_COMPARED:
        return candidates
    backwards = name[::-1]

    def likeness(candidate: str) -> int:
        return _same_beginning(name, candidate) + _same_beginning(backwards, candidate[::-1])

    return nlargest(_MOST_COMPARED, candidates, key=likeness)


def _same_beginning(one: str, other: str) -> int:
    """The number of characters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def canonical(name: str) -> str:
    """A name of a kind or an application without differences of case and separators."""
    return re.sub(r"[\s_.-]+", "-", name.strip().lower())


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of an error message: the name that was probably meant, else all known names."""
    candidates = sorted(names)
    suggestion = nearest(name, candidates)
    return f"did you mean {suggestion}?" if suggestion else _all_known(candidates)


def _all_known(candidates: Sequence[str]) -> str:
    return f"known: {', '.join(candidates)}" if candidates else "there are none"


class Suggestions:
    """`did_you_mean` for the faults of one request: it searches once per name, and for the first few names only."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, tuple[str, ...]], str] = {}

    def did_you_mean(self, name: str, names: Iterable[str]) -> str:
        """The name that was probably meant, else all known names; after the first few names all known names."""
        known = tuple(sorted(names))
        if (name, known) in self._found:
            return self._found[name, known]
        if len(self._found) == _MOST_SEARCHES:
            return _all_known(known)
        return self._found.setdefault((name, known), did_you_mean(name, known))


def misspelt(name: str, names: Iterable[str]) -> str | None:
    """The known name that was misspelt, or None if `name` is another word."""
    return nearest(name, names, _MISSPELT)


def known_actions(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown action: the one that was misspelt, then all; never another verb."""
    actions = sorted(names)
    suggestion = misspelt(name, actions)
    return f"{f'did you mean {suggestion}? ' if suggestion else ''}known: {', '.join(actions)}"


def singular(entity_id: str) -> str:
    """The word for one record of an entity: `ticket` of `tickets`, `company` of `companies`."""
    if entity_id.endswith("ies"):
        return f"{entity_id[:-3]}y"
    if entity_id.endswith(("uses", "sses", "ches", "shes", "xes")):
        return entity_id[:-2]
    return entity_id[:-1] if entity_id.endswith("s") and not entity_id.endswith("ss") else entity_id
