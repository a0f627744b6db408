"""Names in backticks, in documents and docstrings, are names that the program still has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "specs/README.md", "deploy/README.md", "tests/README.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PACKAGES = sorted({path.parent for folder in ("gateway", "workers") for path in (ROOT / folder).rglob("*.py")})
BACKTICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: what looks like a name of ours: a path with an ending, or words joined by underscores or dots
PATH = re.compile(r"[\w./-]+\.(?:py|md|sql|html|sh|toml)")
NAME = re.compile(r"[A-Za-z]\w*(?:\.\w+)*")
WORD = re.compile(r"[A-Za-z]\w+")
#: names of other programs, protocols and applications that documents mention and no source of ours contains
FOREIGN = {
    "authorized_keys",
    "claude_desktop_config.json",
    "example.py",
    "pg_basebackup",
    "pg_dump",
    "pg_restore",
    "SKILL.md",
    "preexec_fn",
    "SUPPORT_DESK_SUBDOMAIN",
    "synchronous_standby_names",
    "userPrincipalName",
    "userEmail",
    "UserEMail",
    "emailAddress2",
    "emailed_count",
}


def docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield text


def words_of(tree: ast.AST) -> Iterator[str]:
    """Identifiers of a module and the words of its strings, without docstrings."""
    said = set(docstrings(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield from name.split(".")
            case ast.Attribute(attr=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Constant(value=str(text)) if text not in said:
                yield from WORD.findall(text)


@cache
def known_words() -> frozenset[str]:
    """Every word that the program, its specs, templates and deployment files contain."""
    words: set[str] = set()
    for folder in ("gateway", "workers", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            words.add(path.stem)
            words.update(words_of(ast.parse(path.read_text("utf-8"))))
        words.update(path.name for path in (ROOT / folder).rglob("*") if path.is_dir())
    others = [
        *(ROOT / "specs").rglob("*.yaml"),
        *(ROOT / "gateway").rglob("*.sql"),
        *(ROOT / "gateway").rglob("*.html"),
    ]
    others += [path for path in (ROOT / "deploy").rglob("*") if path.is_file() and path.suffix != ".md"]
    for path in [*others, ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / "gateway").rglob("page.js")]:
        words.update(WORD.findall(path.read_text("utf-8", errors="ignore")))
    return frozenset(words)


def exists(path: str, beside: Path) -> bool:
    places = (
        ROOT,
        ROOT / "gateway",
        ROOT / "gateway/foundation/db/migrations",
        ROOT / "docs",
        ROOT / "deploy",
        beside,
        beside.parent,
    )
    return any((place / path).exists() for place in places)


def unresolved(text: str, beside: Path) -> list[str]:
    """The names of a text that neither a file nor a word of the program stands for."""
    missing = []
    for name in BACKTICKS.findall(FENCE.sub("", text)):
        if PATH.fullmatch(name):
            resolved = name in FOREIGN or exists(name, beside)
        elif NAME.fullmatch(name) and re.search(r"[_.]|[a-z][A-Z]", name):
            # Prometheus appends _total to the names of counters.
            words = WORD.findall(name.removesuffix("_total"))
            resolved = name in FOREIGN or all(word in known_words() for word in words)
        else:
            continue
        if not resolved:
            missing.append(name)
    return missing


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_documents_are_names_of_the_program(page: Path):
    assert unresolved(page.read_text("utf-8"), page.parent) == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_names_in_docstrings_are_names_of_the_program(package: Path):
    missing = {
        f"{path.name}: {name}"
        for path in package.glob("*.py")
        for text in docstrings(ast.parse(path.read_text("utf-8")))
        for name in unresolved(text, package)
    }

    assert missing == set()
