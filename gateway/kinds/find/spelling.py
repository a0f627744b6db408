"""Corrects misspelt words to words of the index."""

from collections.abc import Iterable

from rapidfuzz import process
from rapidfuzz.distance import OSA

from gateway.kinds.find.words import EMPTY

#: minimum length of a word that is corrected: with one wrong letter, with two, and with two exchanged letters
_ONE_WRONG, _TWO_WRONG, _EXCHANGED = 5, 9, 4


class Spelling:
    """Corrects words to the nearest known word."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = sorted({word for word in known if len(word) > 2 and word.isalpha()})

    def corrected(self, word: str) -> str | None:
        """The known word nearest to a misspelt one; None if there is none, or if it is in `EMPTY`."""
        if len(word) < _EXCHANGED or not word.isalpha():
            return None
        max_distance = 2 if len(word) >= _TWO_WRONG else 1
        candidates = process.extract(word, self._known, scorer=OSA.distance, score_cutoff=max_distance, limit=8)
        if len(word) < _ONE_WRONG:
            candidates = [each for each in candidates if sorted(each[0]) == sorted(word)]
        if not candidates:
            return None
        # Preferred in this order: the same first letter, exchanged letters only, and the longest word.
        best: str = min(
            candidates,
            key=lambda each: (each[1], each[0][0] != word[0], sorted(each[0]) != sorted(word), -len(each[0])),
        )[0]
        return None if best in EMPTY else best
