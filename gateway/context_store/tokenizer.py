"""Words and letter case, computed alike here and in Postgres, whatever its version, locale and extensions.

The database's own text search and `lower` follow its locale; the same filter would then find different records on
different servers. So words are cut at explicit ranges of code points, and case is folded one character at a time, as
the collation `context_fold` of the migration does.
"""

import re

#: everything that parts words: ASCII and Latin-1 signs, general and CJK punctuation, symbols, full-width signs
SEPARATORS = (
    "\x01-/:-@\\[-`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    "\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u303f"
    "\ufe00-\ufe1f\ufe30-\ufe4f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
#: longer words are cut, here and in the filter alike
MAX_WORD = 64
#: characters of one string that are split into words; the rest is ignored
MAX_TEXT = 20_000

_WORD = re.compile(f"([^\0{SEPARATORS}]{{1,{MAX_WORD}}})[^\0{SEPARATORS}]*")


def folded(text: str) -> str:
    """The text in lower case, each character for one; both forms of the small sigma become one."""
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def words(text: str) -> list[str]:
    """The words of the text in lower case, as they stand; long ones cut at 64 characters."""
    return _WORD.findall(folded(text[:MAX_TEXT]))
