"""The part of a filter that the word index can evaluate, and an estimate of its matches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.context_store.entities import StoredEntity
from gateway.context_store.layout import TRUNCATED, Layout, number_term
from gateway.context_store.search.filters import All, AnyOf, Condition, Filter
from gateway.context_store.search.patterns import start_of, words_within
from gateway.context_store.search.values import is_number
from gateway.context_store.term_dictionary import MIN_PART, Containing
from gateway.context_store.tokenizer import words
from gateway.kinds.search_operators import MATCHING, SEEKING, Operator

#: the assumed share of records for a word that is not common
RARE = 0.0
#: maximum share of records of a word that is looked up together with a rarer one
SELECTIVE = 0.05
#: maximum alternatives that are looked up
MAX_ALTERNATIVES = 200
#: maximum words of one string that are looked up
MAX_WORDS = 8
#: maximum parts of words of one pattern that are looked up
MAX_PARTS = 2


@dataclass(frozen=True, slots=True)
class TermQuery:
    """A `tsquery`, and the share of the entity's records that it is expected to match, from 0 to 1."""

    text: str
    share: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The terms of one entity: how they are written, and which of them are common."""

    entity_id: int
    layout: Layout
    common: Mapping[str, float]
    #: the terms that contain parts of words, from the dictionary
    containing: Containing = field(default_factory=dict)

    @classmethod
    def of(cls, entity: StoredEntity, containing: Containing | None = None) -> "Vocabulary":
        return cls(entity.id, entity.layout, entity.common, containing or {})

    def parts(self, filter_: Filter) -> list[tuple[str, str]]:
        """The (prefix of the field, part of a word) pairs whose terms `implied` needs."""
        return list(dict.fromkeys(self._parts(filter_)))

    def _parts(self, filter_: Filter) -> Iterator[tuple[str, str]]:
        match filter_:
            case All(parts) | AnyOf(parts):
                for part in parts:
                    yield from self._parts(part)
            case Condition(operator=operator, value=value) if operator in MATCHING - {Operator.STARTSWITH}:
                if prefix := self.layout.prefix_of(self.entity_id, filter_.field):
                    yield from ((prefix, part) for part in _looked_up(operator, value))
            case _:
                pass

    def exact(self, condition: Condition) -> TermQuery | None:
        """A query for exactly the records of a `keyword` or `fuzzy`; None if the field's words are not indexed."""
        prefix = self.layout.prefix_of(self.entity_id, condition.field)
        if prefix is None or condition.field.name != condition.field.declared:
            return None
        return self._words(condition, prefix)

    def implied(self, filter_: Filter) -> TermQuery | None:
        """A query that matches every record of the filter, and perhaps others; None if the filter implies no words."""
        match filter_:
            case All(parts):
                return _both(_selective([query for part in parts if (query := self.implied(part))]))
            case AnyOf(parts):
                return _either([self.implied(part) for part in parts])
            case Condition():
                return self._implied(filter_)
            case _:
                return None

    def _implied(self, condition: Condition) -> TermQuery | None:
        prefix = self.layout.prefix_of(self.entity_id, condition.field)
        if prefix is None:
            return None
        if condition.operator in SEEKING:
            return self._words(condition, prefix, _selective)
        match condition.operator, condition.value:
            case Operator.EQ, value:
                return self._equal(value, prefix)
            case Operator.IN, values:
                return _either([self._equal(value, prefix) for value in values])
            case Operator.ARRAY_CONTAINS, [*values]:
                return _both([query for value in values if (query := self._equal(value, prefix))])
            case Operator.ARRAY_CONTAINS, value:
                return self._equal(value, prefix)
            case Operator.STARTSWITH, value:
                return self._beginning(value, prefix)
            case Operator.LIKE, value:
                beginning, within = self._beginning(start_of(value), prefix), self._within(condition, prefix)
                return _both([beginning, *within] if beginning else within) if within else beginning
            case Operator.CONTAINS | Operator.ENDSWITH, _:
                return _both(self._within(condition, prefix))
            case _:
                return None

    def _words(
        self, condition: Condition, prefix: str, choose: Callable[[Sequence[TermQuery]], Sequence[TermQuery]] = list
    ) -> TermQuery | None:
        searched = list(dict.fromkeys(words(condition.value)))
        if condition.operator is Operator.KEYWORD:
            return _either([self._term(prefix + word) for word in searched])
        return _both(choose([self._term(prefix + word, beginning=True) for word in searched]))

    def _equal(self, value: Any, prefix: str) -> TermQuery | None:
        if isinstance(value, str):
            return _both([self._term(prefix + word) for word in words(value)[:MAX_WORDS]])
        return self._term(prefix + number_term(value)) if is_number(value) else None

    def _beginning(self, start: str, prefix: str) -> TermQuery | None:
        """The words of a text with this beginning; the last of them may be longer."""
        searched = words(start)[: MAX_WORDS + 1]
        if not searched:
            return None
        is_open = len(searched) <= MAX_WORDS
        *complete, last = [prefix + word for word in searched]
        return _both(
            [*(self._term(term) for term in complete), *([self._term(last, beginning=True)] if is_open else [])]
        )

    def _within(self, condition: Condition, prefix: str) -> list[TermQuery]:
        """The words that contain each part of the pattern, or the mark of a truncated text."""
        found = [self.containing.get((prefix, part)) for part in _looked_up(condition.operator, condition.value)]
        return [
            within
            for terms in found
            if terms is not None and (within := _either([self._term(term) for term in (*terms, prefix + TRUNCATED)]))
        ]

    def _term(self, term: str, *, beginning: bool = False) -> TermQuery:
        if not beginning:
            return TermQuery(f"'{term}'", self.common.get(term, RARE))
        share = sum(share for word, share in self.common.items() if word.startswith(term))
        return TermQuery(f"'{term}':*", min(share, 1.0))


def _looked_up(operator: Operator, value: str) -> list[str]:
    return [word for word in words_within(operator, value)[:MAX_PARTS] if len(word) >= MIN_PART]


def _selective(queries: Sequence[TermQuery]) -> Sequence[TermQuery]:
    """The queries that are evaluated: a common word beside a rare one costs much and excludes few records."""
    rarest = min((query.share for query in queries), default=RARE)
    return [query for query in queries if query.share <= max(rarest, SELECTIVE)]


def _both(queries: Sequence[TermQuery]) -> TermQuery | None:
    if not queries:
        return None
    return TermQuery("(" + " & ".join(query.text for query in queries) + ")", min(query.share for query in queries))


def _either(queries: Sequence[TermQuery | None]) -> TermQuery | None:
    present = [query for query in queries if query]
    if not present or len(present) < len(queries) or len(present) > MAX_ALTERNATIVES:
        return None
    return TermQuery(
        "(" + " | ".join(query.text for query in present) + ")", min(sum(query.share for query in present), 1.0)
    )
