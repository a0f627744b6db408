"""The phrases of kinds, entities and actions, and their similarity to a question.

Phrases and questions are vectors over stems and over the groups of everyday words of the stems. A component is the
rarity of the stem among the phrases (inverse document frequency). The vote of a phrase for its owner is a power of its
cosine with the question, so that one close phrase outweighs many that share a word.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest

from gateway.kinds.find.everyday import GROUPS
from gateway.kinds.find.verbs import ACTIONS_OF_VERB
from gateway.kinds.find.words import stems

#: the owner of a phrase: (kind,), (kind, entity) or (kind, entity, action)
Owner = tuple[str, ...]

#: factors for the rarity of verbs, and of groups of everyday words
_VERB, _GROUP = 0.8, 0.5
#: minimum cosine of a phrase that votes
_MIN_COSINE = 0.1
#: number of largest components of a vector; further components of a long question change little and take time
_COMPONENTS = 12
#: the power of the cosine in a vote
_VOTE = 2.2
#: the power of the number of an owner's phrases, by which the sum of their votes is divided
_CROWD = 0.3
#: number of cached rarities among the kinds that callers have connected
_CACHED_RARITIES = 50_000


@dataclass(frozen=True, slots=True)
class Closeness:
    """The similarity of a question to owners."""

    #: the sum of the votes of an owner's phrases
    votes: Mapping[Owner, float]
    #: the cosine of an owner's closest phrase
    best: Mapping[Owner, float]
    #: the question as a vector of length 1
    vector: Mapping[str, float]


class Phrases:
    """Compares questions with all phrases."""

    def __init__(self, phrases: Iterable[tuple[Owner, str]]) -> None:
        listed = [(owner, frozenset(stems(text))) for owner, text in phrases]
        self._phrases = [(owner, terms) for owner, terms in listed if terms]
        self._counts = Counter(owner for owner, _ in self._phrases)
        #: for each stem and group of everyday words, the number of phrases of each kind that have it
        self._uses = self._uses_by_kind()
        #: the number of phrases of each kind
        self._sizes = Counter(owner[0] for owner, _ in self._phrases)
        self._rarity_among = lru_cache(_CACHED_RARITIES)(self._rarity)
        kinds = frozenset(self._sizes)
        self.rarity = {term: self._rarity(term, kinds) for term in self._uses}
        #: for each stem, the indexes of the phrases that have it, and its component in each
        self._containing: dict[str, tuple[array[int], array[float]]] = defaultdict(lambda: (array("I"), array("d")))
        for place, (_, terms) in enumerate(self._phrases):
            for term, component in self._vector(dict.fromkeys(terms, 1.0)).items():
                places, components = self._containing[term]
                places.append(place)
                components.append(component)

    def __iter__(self) -> Iterator[tuple[Owner, frozenset[str]]]:
        return iter(self._phrases)

    def closeness(self, terms: Mapping[str, float], kinds: frozenset[str] = frozenset()) -> Closeness:
        """The similarity of a question, given as stems with weights, to each owner that shares a word with it.

        The rarity of a stem is that among the phrases of `kinds`, by default of all kinds.
        """
        vector = self._vector(terms, kinds)
        cosines = [0.0] * len(self._phrases)
        touched: set[int] = set()
        for term, component in vector.items():
            if term not in self._containing:
                continue
            places, components = self._containing[term]
            touched.update(places)
            for place, other in zip(places, components, strict=True):
                cosines[place] += component * other
        votes: dict[Owner, float] = defaultdict(float)
        best: dict[Owner, float] = defaultdict(float)
        close = [(place, cosines[place]) for place in touched if cosines[place] > _MIN_COSINE]
        for place, cosine in close:
            owner = self._phrases[place][0]
            votes[owner] += cosine**_VOTE
            best[owner] = max(best[owner], cosine)
        shares = {owner: vote / self._counts[owner] ** _CROWD for owner, vote in votes.items()}
        return Closeness(shares, best, vector)

    def _rarity(self, term: str, kinds: frozenset[str]) -> float:
        """The rarity of a stem or group among the phrases of these kinds or, if they do not have it, of all kinds.

        So kinds that are not connected have little influence on the search in connected kinds.
        """
        uses = self._uses[term]
        n = sum(uses[kind] for kind in kinds)
        count = sum(self._sizes[kind] for kind in kinds) if n else self._sizes.total()
        return math.log(1 + count / (n or uses.total())) * _weight(term)

    def _uses_by_kind(self) -> dict[str, Counter[str]]:
        uses: dict[str, Counter[str]] = defaultdict(Counter)
        for owner, terms in self._phrases:
            for term in terms | groups_of(terms):
                uses[term][owner[0]] += 1
        return uses

    def _vector(self, terms: Mapping[str, float], kinds: frozenset[str] = frozenset()) -> dict[str, float]:
        vector: dict[str, float] = {}
        for term, weight in terms.items():
            for component in (term, *GROUPS.get(term, ())):
                if component in self.rarity:
                    rarity = self._rarity_among(component, kinds) if kinds else self.rarity[component]
                    vector[component] = max(vector.get(component, 0.0), weight * rarity)
        vector = dict(nlargest(_COMPONENTS, vector.items(), key=lambda each: each[1]))
        length = math.sqrt(sum(component * component for component in vector.values())) or 1.0
        return {term: component / length for term, component in vector.items()}


def groups_of(terms: Iterable[str]) -> set[str]:
    """The groups of everyday words that contain the stems."""
    return {group for term in terms for group in GROUPS.get(term, ())}


def _weight(term: str) -> float:
    if term.startswith("~"):
        return _GROUP
    return _VERB if term in ACTIONS_OF_VERB else 1.0
