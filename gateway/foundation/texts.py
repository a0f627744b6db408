"""Texts of strangers without characters that a reader does not see, but a terminal or a model does. Pure."""

import re
import unicodedata
from functools import lru_cache

#: characters that count as printable and are not seen: fillers, joiners and variation selectors
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
#: characters that are not printable and yet belong to texts: ends of lines, and joiners of letters and of emoji
_KEPT = frozenset("\t\n\r\u200c\u200d")


def visible(text: str) -> str:
    """The text without control characters, marks of direction and other unseen characters; lines stay lines."""
    if not text.isprintable():
        text = "".join(each for each in text if _is_seen(each))
    return text if text.isascii() else _UNSEEN.sub("", text)


def is_visible(text: str) -> bool:
    """Whether `visible` changes nothing in the text."""
    return visible(text) == text


@lru_cache(1024)
def _is_seen(character: str) -> bool:
    return character in _KEPT or character.isprintable() or unicodedata.category(character) == "Zs"
