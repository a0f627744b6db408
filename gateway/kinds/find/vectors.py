"""The similarity of meanings: vectors of words, which an optional package has.

The package `wordllama` (MIT) brings a table with a static vector for each of 32,000 parts of words, and the tokenizer
that splits texts into them. Only these two files are read: the package's own loader asks a hub for them. A text is the
mean of its parts' vectors, weighted by their rarity, so that no network is computed. The table is shared by all indexes
of a process. Without the package (extra `semantic`) the search works by words alone.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

_PACKAGE = "wordllama"
_TABLE, _TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
#: the leading components that are read of each vector: the table was trained so that they suffice, and 256 find no more
_COMPONENTS = 128
#: indexes are built in threads
_LOADING = Lock()


def folder() -> Path | None:
    """The folder of the installed package, which is not imported; None without it or its files."""
    found = find_spec(_PACKAGE)
    if not (found and found.submodule_search_locations and find_spec("tokenizers") and find_spec("safetensors")):
        return None
    package = Path(found.submodule_search_locations[0])
    return package if all((package / file).is_file() for file in (_TABLE, _TOKENIZER)) else None


class WordVectors:
    """The table of vectors and its tokenizer."""

    def __init__(self, package: Path) -> None:
        # Imported here, because only a search needs them: they take 0.1 s.
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        [self._table] = load_file(package / _TABLE).values()
        self._tokenizer = Tokenizer.from_file(str(package / _TOKENIZER))
        self._tokenizer.no_padding()

    def parts_of(self, text: str) -> list[int]:
        """The rows of the table for a text."""
        parts: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return parts

    def mean(self, parts: Sequence[int], weights: Sequence[float]) -> Any:
        """The weighted mean of vectors, of length 1; zeros for no parts."""
        import numpy as np

        vectors = self._table[list(parts), :_COMPONENTS].astype(np.float32)
        total = np.asarray(weights, np.float32) @ vectors
        return total / (np.linalg.norm(total) or 1.0)


@cache
def _loaded() -> WordVectors | None:
    package = folder()
    return None if package is None else WordVectors(package)


def shared_vectors() -> WordVectors | None:
    """The vectors of this process, loaded once, at the first call; None without the package."""
    with _LOADING:
        return _loaded()


class Similarity:
    """Compares questions with the texts of documents."""

    def __init__(self, vectors: WordVectors, texts: Iterable[Sequence[str]]) -> None:
        """`texts` has the texts of each document."""
        import numpy as np

        self._vectors = vectors
        documents = [[vectors.parts_of(text) for text in each] for each in texts]
        flat = [parts for document in documents for parts in document]
        uses = Counter(part for parts in flat for part in set(parts))
        #: the rarity of a part among the texts; one that no text has is the rarest
        self._rarity = {part: math.log(1 + len(flat) / count) for part, count in uses.items()}
        self._rarest = math.log(1 + len(flat))
        self._matrix = np.stack([self._vector(parts) for parts in flat])
        self._starts = np.cumsum([0, *(len(document) for document in documents[:-1])])

    def scores(self, question: str) -> list[float]:
        """For each document, the cosine of its closest text with the question, at least 0."""
        import numpy as np

        # Not `@`: the library behind it starts threads, which wait for each other on a busy machine.
        cosines = np.einsum("ij,j->i", self._matrix, self._vector(self._vectors.parts_of(question)))
        closest: list[float] = np.maximum(np.maximum.reduceat(cosines, self._starts), 0).tolist()
        return closest

    def _vector(self, parts: Sequence[int]) -> Any:
        return self._vectors.mean(parts, [self._rarity.get(part, self._rarest) for part in parts])
