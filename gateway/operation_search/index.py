"""The operations that fit a task in plain words, best first; built once, asked in about a millisecond.

An operation is known by the name of its entity, by its `phrases`, by the `synonyms` of its entity and kind, and by its
description and params as a bag of words. A question meets a phrase as far as it has the phrase's words, rare ones
counting more (inverse document frequency over entities); of the phrases of one owner the best counts. The sum is
weighed by how well the action does what the question's verbs want. No model, no state.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import OSA

from gateway.contract.kinds import Effect
from gateway.kinds.catalog import Catalog, Kind
from gateway.operation_search.entries import DEFAULT_LIMIT, OperationEntry, entries_of, passes
from gateway.operation_search.questions import Question, fit, question_of
from gateway.operation_search.words import ACTIONS_OF_VERB, COMMANDS, COMMON, EMPTY, stem, stems, words

_COMMON = frozenset(map(stem, COMMON))
#: what a phrase speaks of: (kind,), (kind, entity) or (kind, entity, action)
Owner = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each sort of evidence counts."""

    kind: float = 0.6
    entity: float = 0.7
    action: float = 1.0
    text: float = 0.3
    #: what further phrases of one owner add to its best
    further: float = 0.4
    #: how sharply a phrase counts less when words of it are missing
    coverage: float = 0.8
    #: how much of the score hangs on the action's fit
    fit: float = 0.7
    #: how much a phrase of the action, as far as the question has it, makes up for verbs that do not fit
    coverage_as_fit: float = 0.5
    #: how much it counts that a word is used of few kinds
    kind_words: float = 0.3
    #: how much less verbs say than nouns, and those that go with anything
    verb: float = 0.8
    common: float = 0.3
    #: what other kinds keep where an application is named
    other_application: float = 0.4
    #: a kind that has a connector, against an equal
    connected: float = 1.08


@dataclass(frozen=True, slots=True)
class Match:
    """An operation that fits, and how well; scores compare within one search only."""

    entry: OperationEntry
    score: float


class OperationIndex:
    """All operations of a catalog, to be searched."""

    def __init__(self, catalog: Catalog, weights: Weights = Weights()) -> None:
        self.entries = tuple(entries_of(catalog))
        self._owners = tuple(_owner(entry) for entry in self.entries)
        self._weights = weights
        self._phrases: list[tuple[Owner, frozenset[str]]] = []
        self._texts: list[Counter[str]] = []
        self._verbs: list[frozenset[str]] = []
        for kind in catalog:
            self._add_kind(kind)
        for entry in self.entries:
            self._add_entry(entry)
        self._rarity = self._rarities()
        self._shares = self._shares_of_kinds()
        self._applications = self._names_of_applications()
        self._phrase_weight = [sum(self._rarity[term] for term in terms) for _, terms in self._phrases]
        self._phrases_with = _inverted(terms for _, terms in self._phrases)
        self._texts_with = _inverted(self._texts)
        self._spellings = self._words_as_written()

    def search(
        self,
        text: str,
        kind: str | None = None,
        effect: Effect | str | None = None,
        limit: int = DEFAULT_LIMIT,
        connected: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> list[Match]:
        """The operations that fit, best first; `kind`, `effect` and `among` (names of kinds) leave out the rest.

        Kinds in `connected` come first among equals. A text that says nothing finds nothing.
        """
        question = question_of(text, self.spelling_of, self._applications)
        scores = self._scores(question)
        matches = [
            Match(entry, round(score * (self._weights.connected if entry.kind.name in connected else 1), 4))
            for entry, score in zip(self.entries, scores, strict=True)
            if score > 0 and passes(entry, kind, effect, among)
        ]
        return sorted(matches, key=lambda match: -match.score)[:limit]

    def spelling_of(self, word: str) -> str | None:
        """The word as the index spells it; None for one that says nothing here."""
        term = stem(word)
        return word if term in self._rarity or term in ACTIONS_OF_VERB else self._corrected(word)

    def _corrected(self, word: str) -> str | None:
        """The word that a misspelt one stands for."""
        if len(word) < 3 or not word.isalpha():
            return None
        max_distance = 1 if len(word) < 7 else 2
        candidates = process.extract(word, self._spellings, scorer=OSA.distance, score_cutoff=max_distance, limit=8)
        if not candidates:
            return None
        # Few people mistype the first letter; an exchange of two keeps all letters; more letters are lost than added.
        best: str = min(
            candidates,
            key=lambda each: (each[1], each[0][0] != word[0], sorted(each[0]) != sorted(word), -len(each[0])),
        )[0]
        return None if best in EMPTY else best

    def _add_kind(self, kind: Kind) -> None:
        for phrase in (kind.spec.title, kind.name, *kind.spec.synonyms):
            self._add_phrase((kind.name,), phrase)
        for entity_id, entity in kind.spec.entities.items():
            for phrase in (entity_id.replace("_", " "), *entity.synonyms):
                self._add_phrase((kind.name, entity_id), phrase)

    def _add_entry(self, entry: OperationEntry) -> None:
        action = entry.action
        for phrase in (entry.title, *(action.phrases if action else ())):
            self._add_phrase(_owner(entry), phrase)
        texts = [entry.description, entry.entity.description, *_names(entry.schema)]
        self._texts.append(Counter(term for text in texts for term in stems(text.replace("_", " "))))
        first = [words(phrase)[:1] for phrase in (*(action.phrases if action else ()), entry.description)]
        self._verbs.append(frozenset(stem(word) for each in first for word in each) & ACTIONS_OF_VERB.keys())

    def _add_phrase(self, owner: Owner, phrase: str) -> None:
        terms = frozenset(stems(phrase))
        if terms:
            self._phrases.append((owner, terms))

    def _rarities(self) -> dict[str, float]:
        """The inverse document frequency of each stem, a document being an entity with all that is said of it."""
        by_entity: dict[Owner, set[str]] = defaultdict(set)
        for owner, terms in self._phrases:
            by_entity[owner[:2]] |= terms
        for entry, text in zip(self.entries, self._texts, strict=True):
            by_entity[entry.kind.name, entry.entity_id] |= text.keys()
        counts = Counter(term for terms in by_entity.values() for term in terms)
        return {
            term: math.log(1 + len(by_entity) / count) * self._weight_of_verb(term) for term, count in counts.items()
        }

    def _weight_of_verb(self, term: str) -> float:
        if term in _COMMON:
            return self._weights.common
        return self._weights.verb if term in ACTIONS_OF_VERB else 1

    def _names_of_applications(self) -> dict[str, str]:
        """The kinds by words that are said of them alone, and of nothing in them: `Zendesk`."""
        used = Counter(term for owner, terms in self._phrases for term in terms)
        return {
            term: owner[0]
            for owner, terms in self._phrases
            if len(owner) == 1 and len(terms) == 1
            for term in terms
            if used[term] == 1
        }

    def _shares_of_kinds(self) -> dict[str, dict[str, float]]:
        """By stem, how much of its use in phrases is in each kind, times how few kinds use it."""
        uses: dict[str, Counter[str]] = defaultdict(Counter)
        for owner, terms in self._phrases:
            for term in terms:
                uses[term][owner[0]] += 1
        kinds = len({owner[0] for owner, _ in self._phrases})
        return {
            term: {kind: count / used.total() * math.log(kinds / len(used)) for kind, count in used.items()}
            for term, used in uses.items()
        }

    def _scores(self, question: Question) -> list[float]:
        weights, (by_owner, coverage) = self._weights, self._phrase_scores(question.terms)
        texts, kind_scores = self._text_scores(question.terms), self._kind_scores(question.terms)
        named = {self._applications[term] for term in question.terms if term in self._applications}
        scores = []
        for place, (entry, owner) in enumerate(zip(self.entries, self._owners, strict=True)):
            evidence = (
                weights.kind * by_owner.get(owner[:1], 0)
                + weights.entity * by_owner.get(owner[:2], 0)
                + weights.action * by_owner.get(owner, 0)
                + weights.text * texts.get(place, 0)
            )
            if not evidence:
                scores.append(0.0)
                continue
            evidence += weights.kind_words * kind_scores.get(owner[0], 0)
            if named and owner[0] not in named:
                evidence *= weights.other_application
            fitting = fit(
                question, entry.action_id, self._verbs[place], weights.coverage_as_fit * coverage.get(owner, 0)
            )
            scores.append(evidence * (1 - weights.fit + weights.fit * fitting))
        return scores

    def _phrase_scores(self, terms: Mapping[str, float]) -> tuple[dict[Owner, float], dict[Owner, float]]:
        """The score of each owner's phrases, and how much of its best phrase the question has, from 0 to 1."""
        weighed: dict[int, float] = defaultdict(float)
        present: dict[int, float] = defaultdict(float)
        for term, weight in terms.items():
            rarity = self._rarity.get(term, 0)
            for phrase in self._phrases_with.get(term, ()):
                weighed[phrase] += weight * rarity
                present[phrase] += rarity
        by_owner: dict[Owner, list[float]] = defaultdict(list)
        coverage: dict[Owner, float] = defaultdict(float)
        for phrase, score in weighed.items():
            covered = present[phrase] / self._phrase_weight[phrase]
            owner = self._phrases[phrase][0]
            by_owner[owner].append(score * covered**self._weights.coverage)
            coverage[owner] = max(coverage[owner], covered)
        return {owner: self._combined(scores) for owner, scores in by_owner.items()}, coverage

    def _kind_scores(self, terms: Mapping[str, float]) -> dict[str, float]:
        """How much the question's words are those of each kind rather than of others."""
        scores: dict[str, float] = defaultdict(float)
        for term, weight in terms.items():
            for kind, share in self._shares.get(term, {}).items():
                scores[kind] += weight * share
        return scores

    def _combined(self, scores: list[float]) -> float:
        best = max(scores)
        return best + self._weights.further * min(sum(scores) - best, best)

    def _text_scores(self, terms: Mapping[str, float]) -> dict[int, float]:
        """Words of the description and params that the question has; long texts count less."""
        scores: dict[int, float] = defaultdict(float)
        for term, weight in terms.items():
            for place in self._texts_with.get(term, ()):
                text = self._texts[place]
                scores[place] += weight * self._rarity[term] / (1 + 0.01 * text.total())
        return scores

    def _words_as_written(self) -> list[str]:
        """Every word that a misspelt one may stand for."""
        sentences = {sentence for entry in self.entries for sentence in _sentences(entry)}
        indexed = {word for sentence in sentences for word in words(sentence.replace("_", " "))}
        return sorted(word for word in indexed | EMPTY | COMMANDS.keys() if len(word) > 2 and word.isalpha())


def _owner(entry: OperationEntry) -> Owner:
    return entry.kind.name, entry.entity_id, entry.action_id


def _inverted(documents: Iterable[Collection[str]]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    for place, terms in enumerate(documents):
        for term in terms:
            positions[term].append(place)
    return dict(positions)


def _sentences(entry: OperationEntry) -> Iterator[str]:
    spec, entity, action = entry.kind.spec, entry.entity, entry.action
    yield from (spec.kind, spec.title, *spec.synonyms, entry.entity_id, entity.description, *entity.synonyms)
    yield from (entry.description, *(action.phrases if action else ()), *_names(entry.schema))


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of params and of the members of objects among them, and the values of enums."""
    for name, member in schema.get("properties", {}).items():
        yield name
        yield from (value for value in member.get("enum", ()) if isinstance(value, str))
        yield from _names(member)
