"""The index data of each operation: phrases, words, verbs, and the ids that it takes."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from math import log
from typing import Any

from gateway.contract.kinds import Effect
from gateway.kinds.catalog import Catalog, Kind
from gateway.operation_search.applications import Applications
from gateway.operation_search.entries import OperationEntry, entries_of
from gateway.operation_search.fitness import WRITES
from gateway.operation_search.phrases import Owner, Phrases, groups_of
from gateway.operation_search.references import EntityKey, entities_taken, nouns_of
from gateway.operation_search.verbs import COMMANDS, plain_action
from gateway.operation_search.words import EMPTY, stem, stems, words

_PATH_PARAM = re.compile(r"{\w+}|[/.?=&]|\bjson\b")
_WRITTEN = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Known:
    """The index data of one operation."""

    entry: OperationEntry
    owner: Owner
    #: the plain action that its own is like: `create` for `create_many`
    action: str
    #: the first two of its owner
    entity: EntityKey
    #: the stems of its description, params and fields
    text: frozenset[str]
    #: the stems of the verbs that begin its phrases
    verbs: frozenset[str]
    #: the entities whose ids it takes, and how surely it does
    taken: Mapping[str, float]


class Corpus:
    """Everything that the search knows of a catalog's operations."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.applications = Applications(catalog)
        entries = tuple(entries_of(catalog))
        self.operations = tuple(
            Known(
                entry,
                owner_of(entry),
                plain_action(entry.action_id, is_read=entry.effect is Effect.READ),
                (entry.kind.name, entry.entity_id),
                _text_of(entry),
                self._verbs_of(entry),
                entities_taken(entry),
            )
            for entry in entries
        )
        self.operations_of: dict[EntityKey, list[Known]] = defaultdict(list)
        for known in self.operations:
            self.operations_of[known.entity].append(known)
        self.phrases = Phrases(self._phrases(catalog, entries))
        self.nouns = nouns_of(catalog)
        self._terms: dict[Owner, set[str]] = defaultdict(set)
        for owner, terms in self.phrases:
            self._terms[owner] |= terms
        #: by entity, the stems of the names of other entities that are listed by its id
        self.listed_below: dict[EntityKey, set[str]] = defaultdict(set)
        for known in self.operations:
            kind, entity_id = known.entity
            for parent in known.taken.keys() - {entity_id} if known.action == "list" else ():
                self.listed_below[kind, parent] |= set(stems(entity_id.replace("_", " "))) - set(stems(parent))
        #: by stem, the operations whose text has it
        self.texts_with: dict[str, list[Owner]] = defaultdict(list)
        for known in self.operations:
            for term in known.text:
                self.texts_with[term].append(known.owner)
        #: the words of kinds: "help desk"
        self.kind_phrases = [(owner[0], terms) for owner, terms in self.phrases if len(owner) == 1]
        self.shares = self._shares_of_kinds()
        self.names, self.vocabularies = self._names_of_entities(), self._vocabularies()
        #: by the kind and the noun of an entity, the verbs that begin the phrases of operations that change something
        self.verbs_of: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for known in self.operations:
            if known.action in WRITES:
                self.verbs_of[noun_of(known.owner)] |= known.verbs
        self.written = frozenset(self._words_as_written())

    def terms_of(self, owner: Owner) -> Set[str]:
        """The stems of an owner's phrases."""
        return self._terms.get(owner, frozenset())

    def _phrases(self, catalog: Catalog, entries: tuple[OperationEntry, ...]) -> Iterator[tuple[Owner, str]]:
        """All phrases without names of applications, which stand for kinds and not for what is to be done."""
        for kind in catalog:
            for text in (kind.spec.title, kind.name, *kind.spec.synonyms):
                yield (kind.name,), self._bare(text)
            for entity_id, entity in kind.spec.entities.items():
                for text in (entity_id.replace("_", " "), *entity.synonyms):
                    yield (kind.name, entity_id), self._bare(text)
        for entry in entries:
            for text in (entry.title, *_phrases_of(entry)):
                yield owner_of(entry), self._bare(text)

    def _bare(self, text: str) -> str:
        return self.applications.taken_from(text)[0]

    def _verbs_of(self, entry: OperationEntry) -> frozenset[str]:
        first = [words(self._bare(phrase))[:1] for phrase in (*_phrases_of(entry), entry.description)]
        return frozenset(stem(word) for each in first for word in each if word not in EMPTY)

    def _shares_of_kinds(self) -> dict[str, dict[str, float]]:
        """By stem, how much of its use in phrases is in each kind, times how few kinds use it."""
        uses: dict[str, Counter[str]] = defaultdict(Counter)
        for owner, terms in self.phrases:
            for term in terms:
                uses[term][owner[0]] += 1
        kinds = len(self.catalog.kinds)
        return {
            term: {kind: count / used.total() * log(kinds / len(used)) for kind, count in used.items()}
            for term, used in uses.items()
        }

    def _names_of_entities(self) -> dict[EntityKey, set[str]]:
        """By entity, the stems and groups of everyday words of its phrases, of its operations' and of its kind's."""
        said: dict[EntityKey, set[str]] = defaultdict(set)
        for owner, terms in self._terms.items():
            if len(owner) > 1:
                said[owner[0], owner[1]] |= terms | self._terms[owner[:1]]
        return {key: terms | groups_of(terms) for key, terms in said.items()}

    def _vocabularies(self) -> dict[EntityKey, set[str]]:
        """By entity, the stems and groups of everyday words of itself, of its operations and of its kind."""
        of_kinds: dict[str, set[str]] = defaultdict(set)
        for kind, terms in self.kind_phrases:
            of_kinds[kind] |= terms
        said: dict[EntityKey, set[str]] = defaultdict(set)
        for owner, terms in self.phrases:
            if len(owner) > 1:
                said[owner[0], owner[1]] |= terms
        for known in self.operations:
            said[known.owner[0], known.owner[1]] |= known.text
        return {key: terms | groups_of(terms) | of_kinds[key[0]] for key, terms in said.items()}

    def _words_as_written(self) -> Iterator[str]:
        """Every word that a misspelt one may stand for."""
        yield from EMPTY
        yield from COMMANDS
        texts = [text for kind in self.catalog for text in _texts_of_kind(kind)]
        for known in self.operations:
            texts += [known.entry.description, *_phrases_of(known.entry), *_names(known.entry.schema)]
        # Each word once: spelling is what takes longest.
        for word in {word for text in texts for word in _WRITTEN.findall(text)}:
            yield from words(word)


def owner_of(entry: OperationEntry) -> Owner:
    return entry.kind.name, entry.entity_id, entry.action_id


def noun_of(owner: Owner) -> tuple[str, ...]:
    """The kind and the noun of an operation's entity: `project_sections` and `sections` have the same."""
    kind, entity_id, _ = owner
    return kind, *stems(entity_id.replace("_", " "))[-1:]


def _phrases_of(entry: OperationEntry) -> tuple[str, ...]:
    return entry.action.phrases if entry.action else ()


def _texts_of_kind(kind: Kind) -> Iterator[str]:
    spec = kind.spec
    yield from (spec.kind, spec.application, spec.title, *spec.synonyms)
    for entity_id, entity in spec.entities.items():
        yield from (entity_id, entity.description, *entity.synonyms)


def _text_of(entry: OperationEntry) -> frozenset[str]:
    names = (*entry.schema.get("properties", ()), *entry.fields)
    # a vendor's people know its paths: "chat.postMessage"
    path = "" if entry.action is None else _PATH_PARAM.sub(" ", entry.action.request.split(" ", 1)[1])
    texts = (entry.description, entry.entity.description, path, *names)
    return frozenset(stems(_CAMEL.sub(" ", " ".join(texts)).replace("_", " ").replace(".", " ")))


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of params and of the members of objects among them, and the values of enums."""
    for name, member in schema.get("properties", {}).items():
        yield name
        yield from (value for value in member.get("enum", ()) if isinstance(value, str))
        yield from _names(member)
