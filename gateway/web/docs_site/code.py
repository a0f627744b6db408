"""Source code as HTML, coloured by classes, because the pages' policy forbids inline styles."""

from functools import cache
from html import escape
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

#: language of a code block → label of its tab, if several blocks become tabs
TAB_LABELS = {"sh": "curl", "python": "Python", "ts": "TypeScript", "console": "CLI"}
_LANGUAGES = {label: language for language, label in TAB_LABELS.items()}


def code_html(source: str, language: str) -> str:
    """A block of code; `tabindex` lets a keyboard scroll it."""
    return f'<pre tabindex="0" data-language="{escape(language)}"><code>{_colored(source, language)}</code></pre>'


def sample_html(label: str, source: str) -> str:
    """A block of code, by the label of its tab."""
    return code_html(source, "sh" if label == "CLI" else _LANGUAGES.get(label, "text"))


def _colored(source: str, language: str) -> str:
    lexer = _lexer(language)
    return escape(source, quote=False) if lexer is None else str(highlight(source, lexer, HtmlFormatter(nowrap=True)))


@cache
def _lexer(language: str) -> Any:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None
