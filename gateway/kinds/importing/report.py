"""The report of an import: counts of mapped operations, guesses, and operations that need a person. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gateway.kinds.importing.mapping import Imported
from gateway.kinds.importing.model import Confidence, Finding

#: maximum findings of one sort on a terminal
SHOWN = 5
_UNPAGED = "without pages"


def report_lines(imported: Imported, shown: int | None = None) -> Iterator[str]:
    """The report: counts, then findings by reason, at most `shown` for each reason."""
    share = 100 * imported.mapped / imported.total
    yield f"{imported.connector['kind']}: {imported.mapped} of {imported.total} operations mapped ({share:.1f} %)"
    yield f"{len(imported.entities)} entities; {imported.clashes} operations got longer names to keep names unique"
    yield from _lists(imported.lists, shown)
    for confidence in Confidence:
        found = [each for each in imported.findings if each.confidence is confidence]
        if found:
            yield ""
            yield f"{str(confidence).capitalize()}: {len(found)}"
            yield from _by_reason(found, imported, shown)


def _lists(lists: Mapping[str, Mapping[str, Any] | None], shown: int | None) -> Iterator[str]:
    """One line for each list, by its style; those that cannot be continued first."""
    if not lists:
        return
    yield ""
    yield f"Lists: {len(lists)}"
    of_style: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, paging in sorted(lists.items()):
        of_style[_UNPAGED if paging is None else paging["style"]].append((name, _turned(paging or {})))
    for style in sorted(of_style, key=lambda style: (style != "unknown", style == _UNPAGED, style)):
        said = "; its answers say that records may be missing" if style == "unknown" else ""
        yield f"  {len(of_style[style])} × {style}{said}"
        listed = of_style[style] if shown is None else of_style[style][:shown]
        yield from (f"      {name}{how}" for name, how in listed)
        if len(listed) < len(of_style[style]):
            yield f"      and {len(of_style[style]) - len(listed)} more"


def _turned(paging: Mapping[str, Any]) -> str:
    """How the next page of a list is requested, and what ends the list."""
    meta = paging.get("meta", {})
    proofs = [meta[paging[name]] for name in ("has_more", "end", "total", "total_pages") if name in paging]
    parts = (paging.get("param"), meta.get(paging.get("next")), f"until {', '.join(proofs)}" if proofs else None)
    told = ", ".join(part for part in parts if part)
    return f": {told}" if told else ""


def _by_reason(findings: Iterable[Finding], imported: Imported, shown: int | None) -> Iterator[str]:
    ordered = sorted(findings, key=lambda each: (each.reason, each.place, each.detail))
    groups = [(reason, list(group)) for reason, group in groupby(ordered, key=lambda each: each.reason)]
    for reason, group in sorted(groups, key=lambda each: (-len(each[1]), each[0])):
        yield f"  {len(group)} × {reason}"
        listed: Sequence[Finding] = group if shown is None else group[:shown]
        for each in listed:
            name = imported.names.get(each.place)
            yield f"      {each.place}" + (f" → {name}" if name else "") + (f": {each.detail}" if each.detail else "")
        if len(listed) < len(group):
            yield f"      and {len(group) - len(listed)} more"
