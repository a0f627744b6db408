"""Words and letter case, computed alike here and in PostgreSQL, with any version, locale and extensions.

PostgreSQL's text search and `lower` depend on the locale, so the same filter would find different records on different
servers. Therefore words end at explicit ranges of code points, and case is folded one character at a time, as the
collation `context_fold` of the migration does.
"""

import re

#: characters between words: ASCII and Latin-1 punctuation, general and CJK punctuation, symbols, full-width forms
SEPARATORS = (
    "\x01-/:-@\\[-`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    "\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u303f"
    "\ufe00-\ufe1f\ufe30-\ufe4f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
#: characters to which longer words are truncated, here and in filters
MAX_WORD = 64
#: characters of one string that are split into words; the rest is ignored
MAX_TEXT = 20_000

_WORD = re.compile(f"([^\0{SEPARATORS}]{{1,{MAX_WORD}}})[^\0{SEPARATORS}]*")


def folded(text: str) -> str:
    """The text in lower case, one character for each; the two forms of the small sigma become one."""
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def words(text: str) -> list[str]:
    """The words of the text in lower case, in order; long ones are truncated."""
    return _WORD.findall(folded(text[:MAX_TEXT]))
