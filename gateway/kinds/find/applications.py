"""Finds the names of applications in a question: they select kinds, but do not describe the task."""

import re
from collections import defaultdict
from collections.abc import Iterator

from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.verbs import COMMANDS
from gateway.kinds.find.words import CONDITION_WORDS, EMPTY, stems, words

#: words of tasks; an application that is named "List" or "Monday" must not change the meaning of tasks for others
_PLAIN_WORDS = EMPTY | CONDITION_WORDS | COMMANDS.keys()

#: a word that is not a preposition, a conjunction, an auxiliary verb or the like
_NOUN = (
    r"(?!(?:in|from|to|on|at|of|for|with|by|and|or|but|so|as|that|which|who|is|are|was|were|has|have|do|does|the|a|an"
    r"|into|about|after|before|since|until|because|when|where|while|under|over|called|named|this|these|those)\b)\w"
)


def _entities_of(kind: Kind) -> Iterator[str]:
    """The names and synonyms of a kind's entities."""
    for entity_id, entity in kind.spec.entities.items():
        yield entity_id.replace("_", " ")
        yield from entity.synonyms


class Applications:
    """The applications of a catalog by their names."""

    def __init__(self, catalog: Catalog) -> None:
        kinds: dict[str, set[str]] = defaultdict(set)
        nouns = {tuple(stems(each)) for kind in catalog if kind.spec.mcp is None for each in _entities_of(kind)}
        for kind in catalog:
            name = kind.spec.application
            # An MCP server gives itself a name; one that calls itself "Tickets" is not meant by every ticket.
            is_noun = kind.spec.mcp is not None and tuple(stems(name)) in nouns
            if not is_noun and not _PLAIN_WORDS.issuperset(words(name)):
                kinds[name.lower()].add(kind.name)
        self._kinds = {name: frozenset(each) for name, each in kinds.items()}
        names = "|".join(re.escape(name) for name in sorted(self._kinds, key=len, reverse=True))
        #: a name with the preposition before it, if no noun follows: "in Zendesk" means the same as "Zendesk", but in
        #: "on Zendesk ticket 7" the preposition belongs to "ticket"
        self._pattern = re.compile(
            rf"(?<![\w@#.])(?:(?:our|the)\s+|(?:in|from|to|on|at)\s+(?!(?:{names or '(?!)'})\s+{_NOUN}))?"
            rf"({names or '(?!)'})(?:['’]s)?(?![\w@])",
            re.I,
        )

    def separated(self, text: str) -> tuple[str, frozenset[str]]:
        """The text without names of applications, and the kinds of these applications."""
        found = [self._kinds[match[1].lower()] for match in self._pattern.finditer(text)]
        return self._pattern.sub(" ", text), frozenset().union(*found)
