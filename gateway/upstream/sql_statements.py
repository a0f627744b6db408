"""Whether a text of SQL does more than its first word says: pure. The dialect is Snowflake's."""

import re

#: comments, and texts in quotes. A comment ends at a line feed; one with another character that may end a line is none
_LINE = r"[^\r\n\v\f\x85\u2028\u2029]*+(?=\r?\n|\Z)"
_COMMENT = rf"--{_LINE}|//{_LINE}|/\*(?:[^*]++|\*(?!/))*+\*/"
_QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"[^"]*+"|\$\$(?:[^$]++|\$(?!\$))*+\$\$"""
#: everything before the end of a statement, a chain of statements, or a quote that is not closed; possessive, so that a
#: text of any size is read once
_PART = rf"-(?!-|>>)|/(?![/*])|\$(?!\$)|{_COMMENT}|{_QUOTED}"
_STATEMENT = re.compile(rf"""(?:[^'"$/;-]++|{_PART})*+""", re.DOTALL)
#: the same before the word CALL
_BEFORE_CALL = re.compile(rf"""(?:(?!\bcall\b)[^'"$/;-]|{_PART})*+""", re.DOTALL | re.IGNORECASE)
_QUOTES = "'\""
_BLANK = re.compile(rf";(?:\s++|{_COMMENT})*+", re.DOTALL)


def fault_of(text: str) -> str | None:
    """Why a text may do more than its first word says; None for one statement that does not.

    A second statement, one chained with `->>`, and the call of a procedure that WITH defines may change anything.
    """
    read = _STATEMENT.match(text)
    rest = text[read.end() :] if read else text
    if rest.startswith("->>"):
        return "chains statements with ->>; send one at a time"
    if rest.startswith(";") and not _BLANK.fullmatch(rest):
        return "has a second statement after the semicolon; send one at a time"
    if rest and not rest.startswith(";"):
        return f"has {rest[0] if rest[0] in _QUOTES else rest[:2]} without a clear end; close it"
    is_with = re.match(r"\s*with\b", text, re.IGNORECASE) is not None
    before = _BEFORE_CALL.match(text) if is_with else read
    if before and read and before.end() < read.end():
        return 'calls a procedure; WITH is for queries here, and a column of that name is written "CALL"'
    return None
