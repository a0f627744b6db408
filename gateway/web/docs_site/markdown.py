"""Markdown to HTML: links lead to pages of the site, and examples in several languages become tabs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from posixpath import dirname, join, normpath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from gateway.web.docs_site.code import TAB_LABELS, code_html
from gateway.web.docs_site.documents import MarkdownFile

_PUNCTUATION = re.compile(r"[^\w\- ]")
_ELSEWHERE = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it, up to the next heading."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class DocsPage:
    """A document as HTML."""

    address: str
    title: str
    html: str
    sections: tuple[Section, ...]


class _Renderer(RendererHTML):
    """Renders code, tabs and tables for the site; methods are named for the types of tokens."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return code_html(tokens[idx].content, tokens[idx].info.partition(" ")[0])

    def tabs(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return tabs_html(
            [(TAB_LABELS[each.info], code_html(each.content, each.info)) for each in tokens[idx].meta["of"]]
        )

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        label = escape(tokens[idx].meta["label"])
        return f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">\n<table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "</table>\n</div>\n"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


def tabs_html(samples: Sequence[tuple[str, str]]) -> str:
    """Blocks of code, each with its label; the page's script turns them into tabs."""
    blocks = (f'<div class="tab"><p class="tab-label">{escape(label)}</p>{html}</div>' for label, html in samples)
    return f'<div class="tabs">{"".join(blocks)}</div>\n'


def inline_html(text: str) -> str:
    """A few paragraphs of Markdown as HTML."""
    return str(_MARKDOWN.render(text))


def page_of(document: MarkdownFile, addresses: Mapping[str, str]) -> DocsPage:
    """The document as a page; `addresses` has the URL path of each document by its path in the repository."""
    tokens = _MARKDOWN.parse(document.text)
    for token in tokens:
        if token.children is not None:
            token.children = list(_linked(token.children, document, addresses))
    sections = tuple(_with_anchors(tokens))
    html = _MARKDOWN.renderer.render(list(_arranged(tokens)), _MARKDOWN.options, {})
    return DocsPage(document.address, sections[0].title, html, sections)


def links_of(document: MarkdownFile) -> Iterator[tuple[str, str, str]]:
    """The links of a document as (group, text, source); the group is the last bold word before the link."""
    group = ""
    for token in _MARKDOWN.parse(document.text):
        children = token.children or []
        for position, child in enumerate(children):
            if child.type == "strong_open":
                group = children[position + 1].content
            elif child.type == "link_open":
                yield group, children[position + 1].content, _source(document, str(child.attrs["href"]))


def _source(document: MarkdownFile, href: str) -> str:
    """The path in the repository of a relative link."""
    return normpath(join(dirname(document.source), href)) if href else document.source


def _linked(children: Sequence[Token], document: MarkdownFile, addresses: Mapping[str, str]) -> Iterator[Token]:
    """The inline tokens with links to the site; other relative links become text, and images are left out."""
    is_dropped = False
    for child in children:
        if child.type == "link_open":
            href = _href(document, str(child.attrs["href"]), addresses)
            is_dropped = href is None
            if href is not None:
                child.attrs["href"] = href
                yield child
        elif child.type == "link_close" and is_dropped:
            is_dropped = False
        elif child.type != "image":
            yield child


def _href(document: MarkdownFile, href: str, addresses: Mapping[str, str]) -> str | None:
    if href.startswith(_ELSEWHERE):
        return href
    path, hash_sign, anchor = href.partition("#")
    address = addresses.get(_source(document, path))
    return None if address is None else f"{address}{hash_sign}{anchor}"


def _with_anchors(tokens: Sequence[Token]) -> Iterator[Section]:
    """The sections; sets the anchors of headings, and labels tables with the name of their section."""
    title, anchor, level, texts = "", "", 1, list[str]()
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                yield Section(anchor, title, level, " ".join(texts))
            title, level, texts = _plain(tokens[position + 1]), int(token.tag[1:]), []
            anchor = anchor_of(title)
            token.attrs["id"] = anchor
        elif token.type == "table_open":
            token.meta["label"] = title
        elif token.type == "inline" and tokens[position - 1].type != "heading_open":
            texts.append(_plain(token))
        elif token.type == "fence":
            texts.append(token.content)
    yield Section(anchor, title, level, " ".join(texts))


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as GitHub generates it: lower case, no punctuation, hyphens for spaces."""
    return _PUNCTUATION.sub("", heading.lower()).replace(" ", "-")


def _plain(token: Token) -> str:
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children or ())


def _arranged(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, with neighbouring code in several languages as tabs, and adjusted heading rows."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if "style" in token.attrs:  # alignment, which the pages' policy forbids inline
            token.attrs = {"class": "number"} if "right" in str(token.attrs["style"]) else {}
        run = _samples_from(tokens, position)
        if len(run) > 1:
            yield Token("tabs", "", 0, meta={"of": run})
        elif token.type == "thead_open":
            end = next(after for after in range(position, len(tokens)) if tokens[after].type == "thead_close")
            yield from _heading_row(tokens[position : end + 1])
            position = end
        else:
            yield token
        position += max(len(run), 1)


def _samples_from(tokens: Sequence[Token], start: int) -> list[Token]:
    run: list[Token] = []
    for token in tokens[start:]:
        if token.type != "fence" or token.info not in TAB_LABELS or token.info in {each.info for each in run}:
            break
        run.append(token)
    return run


def _heading_row(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a heading row; empty headings become plain cells, and a row without text is left out."""
    if not any(token.content for token in tokens if token.type == "inline"):
        return []
    for position, token in enumerate(tokens):
        if token.type == "th_open":
            token.attrs = {"class": "number"} if "right" in str(token.attrs.get("style")) else {}
            if tokens[position + 1].content:
                token.attrs["scope"] = "col"
            else:
                token.tag = tokens[position + 2].tag = "td"
    return list(tokens)
