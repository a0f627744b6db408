"""The Markdown files of the site, with their paths and URLs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

ROOT = "/docs"
#: the front page, whose links are the navigation
MAP = "docs/README.md"
#: documents other than those of docs/ → their path below `/docs`
_BESIDE = {
    "README.md": "start",
    "deploy/README.md": "how-to/install",
    "specs/README.md": "reference/spec-language",
    "tests/benchmarks/REPORT.md": "measurements",
    "CHANGELOG.md": "changes",
}


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A file: its path in the repository, its URL path and its text."""

    source: str
    address: str
    text: str


@cache
def documents() -> Mapping[str, MarkdownFile]:
    """Every document by its path in the repository; an installation has them in the package."""
    inside = Path(str(files("gateway") / "documents"))
    root = inside if inside.is_dir() else Path(__file__).parents[3]
    sources = {path.relative_to(root).as_posix(): path for path in sorted((root / "docs").rglob("*.md"))}
    sources |= {source: root / source for source in _BESIDE}
    return {source: MarkdownFile(source, _address(source), path.read_text("utf-8")) for source, path in sources.items()}


def _address(source: str) -> str:
    if source == MAP:
        return ROOT
    return f"{ROOT}/{_BESIDE.get(source) or source.removeprefix('docs/').removesuffix('.md')}"
