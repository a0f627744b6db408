"""Writes a kind as a folder of YAML files; files that a person changed are not overwritten."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway.kinds.importing.mapping import Imported
from gateway.kinds.importing.model import ImportFailed

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MARK = re.compile(r"# Imported by `gateway specs import`.*\n# sha256 ([0-9a-f]{64})\n")
_HEADER = "# Imported by `gateway specs import` from {source}; corrections belong in an overlay.\n"
#: the report beside the specs
REPORT = "import-report.txt"


class _Dumper(_DUMPER):  # type: ignore[misc]  # the dumper in C, if PyYAML has it
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def files_of(imported: Imported, source: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file; one text at a time, because those of a large kind are over 100 MiB."""
    return texts_of(imported.connector, imported.entities, source)


def texts_of(
    connector: Mapping[str, Any], entities: Mapping[str, Mapping[str, Any]], source: str
) -> Iterator[tuple[str, str]]:
    """The name and the text of each file of a kind."""
    documents = {"connector": connector, **entities}
    yield from ((f"{name}.yaml", _text(document, source)) for name, document in documents.items())


def _text(document: Mapping[str, Any], source: str) -> str:
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f"{_HEADER.format(source=source)}# sha256 {digest}\n{body}"


def changed_by_hand(folder: Path) -> list[str]:
    """The names of the YAML files in a folder that differ from what an import wrote."""
    return [path.name for path in sorted(folder.glob("*.yaml")) if not _is_as_written(path.read_text("utf-8"))]


def _is_as_written(text: str) -> bool:
    mark = _MARK.match(text)
    return mark is not None and hashlib.sha256(text[mark.end() :].encode()).hexdigest() == mark[1]


def write_kind(folder: Path, files: Iterable[tuple[str, str]], report: str, *, force: bool = False) -> None:
    """Replace the folder of a kind, completely or not at all; raises ImportFailed if a person changed its files."""
    edited = changed_by_hand(folder) if folder.is_dir() and not force else []
    if edited:
        named = ", ".join(edited[:5]) + (f" and {len(edited) - 5} more" if len(edited) > 5 else "")
        raise ImportFailed(
            f"{folder} has files that were changed by hand: {named}; "
            "move the changes to an overlay (--overlay), write to another folder (--into), or discard them (--force)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in files:
            (fresh / name).write_text(text, "utf-8")
        (fresh / REPORT).write_text(report, "utf-8")
        fresh.chmod(0o755)
        kept = (
            [path for path in folder.iterdir() if path.suffix != ".yaml" and path.name != REPORT]
            if folder.is_dir()
            else []
        )
        for path in kept:
            os.replace(path, fresh / path.name)
        if folder.is_dir():
            shutil.rmtree(folder)
        os.replace(fresh, folder)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise ImportFailed(f"{folder} cannot be written: {error.strerror}") from error
