"""Converts names and sentences of a document: to identifiers, words and plain text. Pure."""

import html
import re

from gateway.foundation.texts import visible

#: maximum characters of a description
MAX_DESCRIPTION = 240
_MAX_IDENTIFIER = 80


def identifier(text: str) -> str:
    """A name in lower snake case: AccountSid and account-sid become account_sid; a leading digit gets the prefix x."""
    text = re.sub(r"Open(ID|Id|API|Api)(?![a-z])", lambda found: found[0].capitalize(), text)
    text = re.sub(r"openId(?![a-z])", "openid", text)
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text)
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_MAX_IDENTIFIER].strip("_")
    return f"x{name}" if name[:1].isdigit() else name


def words(text: str) -> list[str]:
    """The words of a name, in lower case: listRepoIssues has list, repo, issues."""
    return [each for each in identifier(text).split("_") if each]


def phrase(text: str) -> str:
    """A name as words with spaces: due_date becomes "due date"."""
    return " ".join(words(text)) or text


def plain(text: object, limit: int = MAX_DESCRIPTION) -> str:
    """Markdown or HTML as one line of plain text, cut after a sentence or a word."""
    if not isinstance(text, str):
        return ""
    if len(text) > 20 * limit:
        text = text[: 20 * limit]
    text = re.sub(r"<!--.*?-->|<(?:style|script)[^>]*>.*?</(?:style|script)>", " ", text, flags=re.S)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = html.unescape(re.sub(r"</?[a-zA-Z][^<>]{0,200}>", " ", text))
    text = re.sub(r"(?m)^\s*(#{1,6}|>|\*|-|\|)\s+", "", text)
    text = re.sub(r"\[!\w+\]|{%.*?%}", " ", text)
    text = re.sub(r"`{1,3}|\*\*|__", "", text)
    text = re.sub(r"\s+", " ", visible("".join(each if each.isprintable() else " " for each in text))).strip()
    return text if len(text) <= limit else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    sentences = re.match(rf"(.{{20,{limit - 1}}}[.!?])\s", text)
    if sentences:
        return sentences[1]
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
