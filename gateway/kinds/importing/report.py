"""The report of an import: counts of mapped operations, guesses, and operations that need a person. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from gateway.kinds.importing.mapping import Imported
from gateway.kinds.importing.model import Confidence, Finding

#: maximum findings of one sort on a terminal
SHOWN = 5


def report_lines(imported: Imported, shown: int | None = None) -> Iterator[str]:
    """The report: counts, then findings by reason, at most `shown` for each reason."""
    share = 100 * imported.mapped / imported.total
    yield f"{imported.connector['kind']}: {imported.mapped} of {imported.total} operations mapped ({share:.1f} %)"
    yield f"{len(imported.entities)} entities; {imported.clashes} operations got longer names to keep names unique"
    for confidence in Confidence:
        found = [each for each in imported.findings if each.confidence is confidence]
        if found:
            yield ""
            yield f"{str(confidence).capitalize()}: {len(found)}"
            yield from _by_reason(found, imported, shown)


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
