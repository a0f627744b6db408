"""Kinds from folders of specs: the shipped ones, and those of the operator, which are checked first."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.lint.kind import linted_kind
from gateway.kinds.lint.reading import errors_of
from gateway.kinds.sources import LintError, SpecError, entity_files, lint_error, read_yaml
from gateway.kinds.spec import KIND_NAME, ConnectorSpec, Entity

log = logging.getLogger(__name__)


def shipped_specs() -> Path:
    """The folder of the kinds that come with the package: inside a wheel, else beside the checkout's packages."""
    inside = Path(str(files("gateway") / "specs"))
    return inside if inside.is_dir() else Path(__file__).parents[2] / "specs"


def own_folders() -> list[Path]:
    """The folders in `GATEWAY_SPECS`, for programs without other settings of the gateway."""
    return [Path(folder) for folder in os.environ.get("GATEWAY_SPECS", "").split(os.pathsep) if folder]


def spec_folders(extra: Iterable[str | os.PathLike[str]] = ()) -> list[Path]:
    """Every kind's folder, the shipped ones first; a later folder replaces an earlier kind of its name."""
    roots = [shipped_specs(), *(Path(folder) for folder in extra)]
    missing = [root for root in roots if not root.is_dir()]
    if missing:
        raise SpecError([LintError(root, 0, "the folder does not exist; correct GATEWAY_SPECS") for root in missing])
    return [folder for root in roots for folder in kind_folders(root)]


def kind_folders(root: Path) -> list[Path]:
    """The root and the folders in it, as far as they are kinds; raises SpecError for a root that cannot be read."""
    try:
        return [folder for folder in sorted([root, *root.iterdir()]) if (folder / "connector.yaml").is_file()]
    except OSError as error:
        message = f"the folder cannot be read: {error.strerror}; correct its permissions or GATEWAY_SPECS"
        raise SpecError([LintError(root, 0, message)]) from error


def serving_catalog(extra: Iterable[str | os.PathLike[str]]) -> Catalog:
    """`load_catalog` for processes that serve: a folder that is missing costs its kinds only, and is in `missing`."""
    present, missing = [], []
    for root in map(Path, extra):
        try:
            spec_folders([root])
        except SpecError as error:
            missing.append(error)
        else:
            present.append(root)
    return load_catalog(present, missing)


def load_catalog(extra: Iterable[str | os.PathLike[str]] = (), missing: Sequence[SpecError] = ()) -> Catalog:
    """All shipped kinds and those in the extra folders (`GATEWAY_SPECS`); raises SpecError for a missing folder.

    A kind of an extra folder whose spec has errors is not served: it is among the catalog's `refused`. Shipped kinds
    are checked by the tests; the file of each of their entities is read when the entity is first used.
    """
    kinds: dict[str, Kind] = {}
    errors: list[LintError]
    refused: dict[str, SpecError] = {}
    shipped = shipped_specs()
    for folder in spec_folders(extra):
        kind, errors = (_shipped_kind(folder), []) if folder.parent == shipped else _checked_kind(folder, kinds)
        if kind is None or errors:
            name = kind_name_of(folder)
            kinds.pop(name, None)
            refused[name] = SpecError(errors)
        else:
            kinds[kind.name] = kind
            refused.pop(kind.name, None)
    return Catalog(kinds.values(), refused, missing)


def _checked_kind(folder: Path, others: Mapping[str, Kind]) -> tuple[Kind | None, list[LintError]]:
    """The kind in a folder with its errors; an error of the linter itself costs this kind only, too."""
    try:
        kind, errors = linted_kind(folder)
    except Exception as error:
        log.exception("the linter failed at %s", folder)
        return None, [LintError(folder, 0, f"the linter failed: {type(error).__name__}; report this as a fault of it")]
    for other in others.values():
        if kind is not None and other.name != kind.name and other.spec.definition_id == kind.spec.definition_id:
            message = f"is that of {other.name}; leave it out, or write another UUID"
            errors.append(lint_error(folder, ("definition_id",), message))
    return kind, errors


def kind_name_of(folder: Path) -> str:
    """The name of the kind in a folder, even a faulty one; the folder's name if the files have no valid one."""
    try:
        name = read_yaml(folder / "connector.yaml").get("kind")
    except SpecError:
        return folder.name
    return name if isinstance(name, str) and re.fullmatch(KIND_NAME, name) else folder.name


def load_kind(folder: Path) -> Kind:
    """The kind in a folder: `connector.yaml` and one file for each entity; raises SpecError."""
    document = read_yaml(folder / "connector.yaml")
    document["entities"] = {path.stem: read_yaml(path) for path in entity_files(folder)}
    try:
        spec = ConnectorSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(list(errors_of(folder, error))) from error
    return Kind(spec)


@cache
def _shipped_kind(folder: Path) -> Kind:
    """A shipped kind, which does not change while the process runs: later catalogs have the same one."""
    spec = ConnectorSpec.model_validate(read_yaml(folder / "connector.yaml"))
    return Kind(spec.model_copy(update={"entities": _EntityFiles(folder)}))


class _EntityFiles(Mapping[str, Entity]):
    """The entities of a shipped kind by id. Each file is read at first use, so that a start does not read hundreds."""

    def __init__(self, folder: Path) -> None:
        self._files = {path.stem: path for path in entity_files(folder)}
        self._entities: dict[str, Entity] = {}

    def __getitem__(self, entity_id: str) -> Entity:
        entity = self._entities.get(entity_id)
        if entity is None:
            read = Entity.model_validate(read_yaml(self._files[entity_id]))
            entity = self._entities.setdefault(entity_id, read)  # all threads share the first one
        return entity

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
