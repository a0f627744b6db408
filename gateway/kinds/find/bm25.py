"""Ranks documents by the words of a question: Okapi BM25 (Robertson and Zaragoza 2009)."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

#: the usual constants: how soon further uses of a word in a document count less, and how much its length does
_SATURATION, _LENGTH = 1.2, 0.75


class Bm25:
    """Documents as counts of stems."""

    def __init__(self, documents: Sequence[Counter[str]]) -> None:
        n = self._size = len(documents)
        average = sum(document.total() for document in documents) / max(n, 1) or 1.0
        uses: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, document in enumerate(documents):
            length = _SATURATION * (1 - _LENGTH + _LENGTH * document.total() / average)
            for term, count in document.items():
                uses[term].append((place, count * (_SATURATION + 1) / (count + length)))
        #: the rarity of each stem among the documents
        self.rarity = {term: math.log(1 + (n - len(used) + 0.5) / (len(used) + 0.5)) for term, used in uses.items()}
        self._uses = dict(uses)

    def scores(self, terms: Mapping[str, float]) -> list[float]:
        """The score of each document for stems with weights; the best score is 1, and 0 means no common stem."""
        scores = [0.0] * self._size
        for term in terms.keys() & self._uses.keys():
            asked = terms[term] * self.rarity[term]
            for place, weight in self._uses[term]:
                scores[place] += asked * weight
        best = max(scores, default=0.0)
        return [score / best for score in scores] if best else scores
