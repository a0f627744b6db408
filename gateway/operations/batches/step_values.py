"""The values of steps' results that later steps refer to, kept as JSON while a batch runs."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.operations.batches import references
from gateway.operations.batches.references import MissingValue

#: bytes of JSON that one job keeps; a decoded value takes about twenty times its bytes
MAX_KEPT = 8 << 20


class StepValues:
    """The values of one job, within `MAX_KEPT` bytes."""

    def __init__(self) -> None:
        #: id of a step → the references to its result
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        self._values: dict[str, msgspec.Raw] = {}
        self._left = MAX_KEPT
        self._succeeded: set[str] = set()

    def expect(self, params: Mapping[str, Any]) -> None:
        """Note the references of a step, so that the values that they name are kept."""
        for _, reference in references.references(params):
            self._named[references.source_of(reference)].add(reference)

    def keep(self, step: str, result: msgspec.Raw) -> None:
        """Keep the values of a step's result that other steps refer to; none after the bound is exceeded."""
        self._succeeded.add(step)
        for reference, value in references.values_of(result, self._named[step]):
            self._left -= len(memoryview(value))
            if self._left < 0:
                return
            self._values[reference] = value.copy()  # a view would keep the whole result

    def missing(self, params: Mapping[str, Any]) -> str | None:
        """The first step that these params refer to and that did not succeed."""
        sources = {references.source_of(reference) for _, reference in references.references(params)}
        return min(sources - self._succeeded, default=None)

    def filled(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params with each reference replaced by its value; raises MissingValue."""
        try:
            return references.filled_params(params, self._values)
        except MissingValue:
            if self._left < 0:
                raise MissingValue(
                    f"the values that the steps refer to exceed {MAX_KEPT >> 20} MiB; refer to smaller values"
                ) from None
            raise
