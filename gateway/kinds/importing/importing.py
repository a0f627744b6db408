"""The import as one call: reads the document and its overlays, and maps it to a kind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.kinds.catalog import Kind
from gateway.kinds.importing.mapping import Imported, Options, import_document
from gateway.kinds.importing.overlay import apply_overlay
from gateway.kinds.importing.sources import Fetch, is_url, load
from gateway.kinds.spec import ConnectorSpec


async def imported_from(
    source: str, options: Options, overlays: Sequence[Path] = (), *, fetch: Fetch | None = None
) -> Imported:
    """The kind of the document at a path or URL, corrected by overlays in their order; raises ImportFailed."""
    document = await load(source, fetch)
    findings = [finding for overlay in overlays for finding in apply_overlay(document, await load(str(overlay)))]
    based = replace(options, base_url=source) if is_url(source) else options
    imported = import_document(document, based)
    imported.findings[:0] = findings
    return imported


def kind_of(imported: Imported) -> Kind:
    """The kind that the catalog would load from the written files."""
    return kind_of_documents(imported.connector, imported.entities)


def kind_of_documents(connector: Mapping[str, Any], entities: Mapping[str, Any]) -> Kind:
    """The kind of the documents of its files, which the linter has checked."""
    return Kind(ConnectorSpec.model_validate({**connector, "entities": entities}))
