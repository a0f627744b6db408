"""Words as the index spells them: misspelt ones are corrected."""

from collections.abc import Iterable

from rapidfuzz import process
from rapidfuzz.distance import OSA

from gateway.operation_search.words import EMPTY

#: the shortest word with one wrong letter, and with two, that is corrected; exchanged letters are seen in shorter ones
_ONE_WRONG, _TWO_WRONG, _EXCHANGED = 5, 9, 4


class Spelling:
    """Corrects words to known ones."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = sorted({word for word in known if len(word) > 2 and word.isalpha()})

    def corrected(self, word: str) -> str | None:
        """The known word that a misspelt one stands for; None where there is none, or where it says nothing."""
        if len(word) < _EXCHANGED or not word.isalpha():
            return None
        max_distance = 2 if len(word) >= _TWO_WRONG else 1
        candidates = process.extract(word, self._known, scorer=OSA.distance, score_cutoff=max_distance, limit=8)
        if len(word) < _ONE_WRONG:
            candidates = [each for each in candidates if sorted(each[0]) == sorted(word)]
        if not candidates:
            return None
        # Few people mistype the first letter; an exchange of two keeps all letters; more letters are lost than added.
        best: str = min(
            candidates,
            key=lambda each: (each[1], each[0][0] != word[0], sorted(each[0]) != sorted(word), -len(each[0])),
        )[0]
        return None if best in EMPTY else best
