"""A filter as a SQL condition on `context_records AS r`; all values of the caller are arguments.

A condition may be NULL, which counts as false; `not` handles it by `IS NOT TRUE`. Arguments are cast from text, so that
the connection's codecs do not matter.
"""

from typing import Any

import msgspec

from gateway.context_store.fields import NUMBERS, Field, FieldType
from gateway.context_store.layout import KEY_LENGTH
from gateway.context_store.search.filters import All, AnyOf, Condition, Filter, Not
from gateway.context_store.search.patterns import pattern_of
from gateway.context_store.search.terms import Vocabulary
from gateway.context_store.tokenizer import MAX_TEXT, SEPARATORS, words
from gateway.kinds.search_operators import MATCHING, ORDERING, Operator

COMPARISONS = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}
#: operators on a key that may be the rounded value
WIDENED = {Operator.GT: ">=", Operator.GTE: ">=", Operator.LT: "<=", Operator.LTE: "<="}

NOT_NULL = "jsonb_typeof(v) <> 'null'"
#: end of a JSON path: the elements of an array, or the value itself
EACH = "[*]"
#: end of a JSON path: all values within
INSIDE = ".**"


class Arguments:
    """The `$n` of one statement.

    Each is a subquery, so that a cast from text (`text::jsonb`) is evaluated once and not for each record, and so that
    PostgreSQL uses a generic plan: with visible values it plans every search anew, which takes longer than the search.
    If PostgreSQL chooses between indexes by the values, they are `visible`.
    """

    def __init__(self, *, visible: bool = False) -> None:
        self.values: list[object] = []
        self._visible = visible

    def add(self, value: object, type_: str) -> str:
        """The placeholder for the value, cast to the type."""
        self.values.append(value)
        placeholder = f"${len(self.values)}::{type_}"
        # Without a second cast, `ANY` would take it for a subquery of many rows.
        return placeholder if self._visible else f"(SELECT {placeholder})::{type_.rpartition('::')[2]}"

    def json(self, value: Any) -> str:
        """The placeholder for a JSON value."""
        return self.add(msgspec.json.encode(value).decode(), "text::jsonb")


def value_of(field: Field, arguments: Arguments, *, as_text: bool = False) -> str:
    """The JSON value of a scalar field; `as_text`: the content of a string, or else the JSON text."""
    more = ">" if as_text else ""
    if len(field.path) == 1:
        return f"(r.document ->{more} {arguments.add(field.name, 'text')})"
    return f"(r.document #>{more} {arguments.add(list(field.path), 'text[]')})"


class Conditions:
    """Converts filters of one entity to SQL."""

    def __init__(self, vocabulary: Vocabulary, arguments: Arguments) -> None:
        self._vocabulary = vocabulary
        self._arguments = arguments

    def of(self, filter_: Filter) -> str:
        """The condition that is true exactly if the filter is."""
        match filter_:
            case All(()):
                return "TRUE"
            case All(parts):
                return "(" + " AND ".join(self.of(part) for part in parts) + ")"
            case AnyOf(parts):
                return "(" + " OR ".join(self.of(part) for part in parts) + ")"
            case Not(part):
                return f"({self.of(part)}) IS NOT TRUE"
            case Condition(Operator.KEYWORD | Operator.FUZZY):
                return self._word_condition(filter_)
            case Condition(field=field) if not field.is_scalar:
                return self._dynamic(filter_)
            case Condition():
                return self._keyed(filter_) or self._scalar(filter_)

    # Scalar fields

    def _keyed(self, condition: Condition) -> str | None:
        """The condition on the field's key column; None if no key column can decide it."""
        column = self._vocabulary.layout.key_of(condition.field)
        if column is None or condition.operator not in ORDERING | {Operator.EQ}:
            return None
        if condition.value is None:
            return f"r.{column} IS NULL"
        if condition.field.type in NUMBERS:
            sign = WIDENED.get(condition.operator, "=")
            key = self._arguments.add(_double(condition.value), "double precision")
            return f"(r.{column} {sign} {key} AND {self._scalar(condition)})"
        if len(condition.value) >= KEY_LENGTH:
            return None
        return f"r.{column} {COMPARISONS.get(condition.operator, '=')} {self._arguments.add(condition.value, 'text')}"

    def _scalar(self, condition: Condition) -> str:
        value, operand = value_of(condition.field, self._arguments), condition.value
        if condition.operator is Operator.EQ:
            return self._equal(value, condition)
        if condition.operator is Operator.IN:
            return self._among(value, condition)
        if condition.operator in MATCHING:
            pattern = self._arguments.add(pattern_of(condition.operator, operand), "text")
            return f"context_fold(context_text({value})) LIKE {pattern}"
        return self._compared(value, condition.operator, operand)

    def _equal(self, value: str, condition: Condition) -> str:
        if condition.value is None:
            return self._missing(value, condition.field)
        equal = f"{value} = {self._arguments.json(condition.value)}"
        if not isinstance(condition.value, str):
            return equal
        # The comparison of texts is faster than that of JSON values, and sufficient for most records.
        text = value_of(condition.field, self._arguments, as_text=True)
        return f"({text} = {self._arguments.add(condition.value, 'text')} AND {equal})"

    def _compared(self, value: str, operator: Operator, operand: float | str) -> str:
        """Compare as numbers or as strings, by the type of the filter's value; NULL for any other type."""
        if isinstance(operand, str):
            return f'context_text({value}) COLLATE "C" {COMPARISONS[operator]} {self._arguments.add(operand, "text")}'
        number = self._arguments.add(msgspec.json.encode(operand).decode(), "text::numeric")
        return f"context_numeric({value}) {COMPARISONS[operator]} {number}"

    def _missing(self, value: str, field: Field) -> str:
        type_ = "number" if field.type in NUMBERS else field.type.value
        return f"jsonb_typeof({value}) IS DISTINCT FROM '{type_}'"

    def _among(self, value: str, condition: Condition) -> str:
        values = [msgspec.json.encode(element).decode() for element in condition.value if element is not None]
        among = f"{value} = ANY ({self._arguments.add(values, 'text[]::jsonb[]')})"
        return f"({among} OR {self._missing(value, condition.field)})" if None in condition.value else among

    # Fields whose type only the value shows

    def _dynamic(self, condition: Condition) -> str:
        match condition.operator, condition.value:
            case Operator.EQ, None:
                return f"NOT {self._any(condition.field, NOT_NULL)}"
            case Operator.EQ, [*_] as array:
                return self._any(condition.field, f"v = {self._arguments.json(array)}")
            case Operator.EQ, value:
                return self._any(condition.field, f"v = {self._arguments.json(value)}", EACH)
            case Operator.IN, values:
                return self._one_of(condition.field, values)
            case Operator.ARRAY_CONTAINS, value:
                elements = self._arguments.json(value if isinstance(value, list) else [value])
                return self._any(condition.field, f"jsonb_typeof(v) = 'array' AND v @> {elements}")
            case operator, value if operator in MATCHING:
                pattern = self._arguments.add(pattern_of(operator, value), "text")
                return self._any(condition.field, f"context_fold(context_text(v)) LIKE {pattern}", EACH)
            case operator, value:
                return self._any(condition.field, self._compared("v", operator, value), EACH)

    def _one_of(self, field: Field, values: list[Any]) -> str:
        separate = [value for value in values if value is None or isinstance(value, list)]
        each = [msgspec.json.encode(value).decode() for value in values if value not in separate]
        parts = [self._dynamic(Condition(Operator.EQ, field, value)) for value in separate]
        among = f"v = ANY ({self._arguments.add(each, 'text[]::jsonb[]')})"
        return "(" + " OR ".join([*parts, self._any(field, among, EACH)]) + ")"

    def _any(self, field: Field, condition: str, end: str = "") -> str:
        """True if the condition is for any value `v` of the field; `lax` paths enter arrays."""
        path = "lax $" + "".join("." + msgspec.json.encode(segment).decode() for segment in field.path) + end
        values = f"jsonb_path_query(r.document, {self._arguments.add(path, 'text::jsonpath')})"
        return f"EXISTS (SELECT FROM {values} AS v WHERE {condition})"

    # Words

    def _word_condition(self, condition: Condition) -> str:
        terms = self._vocabulary.exact(condition)
        if terms is None:
            return self._unindexed(condition)
        query = self._arguments.add(terms.text, "text::tsquery")
        indexed = f"""(SELECT w.terms @@ {query} FROM context_words AS w
            WHERE w.entity_id = r.entity_id AND w.id = r.id AND w.digest = r.digest)"""
        return f"COALESCE({indexed}, {self._unindexed(condition)})"

    def _unindexed(self, condition: Condition) -> str:
        """The condition on words, evaluated on the document."""
        searched = list(dict.fromkeys(words(condition.value)))
        if condition.operator is Operator.KEYWORD:
            return self._tokenized(condition.field, f"word = ANY ({self._arguments.add(searched, 'text[]')})")
        begins = [f"starts_with(word, {self._arguments.add(word, 'text')})" for word in searched]
        return "(" + " AND ".join(self._tokenized(condition.field, begin) for begin in begins) + ")"

    def _tokenized(self, field: Field, condition: str) -> str:
        """True if the condition is for any `word` in the strings of the field."""
        separators = self._arguments.add(f"[{SEPARATORS}]+", "text")
        parts = f"regexp_split_to_table(context_fold(left(context_text(v), {MAX_TEXT})), {separators})"
        strings = f"EXISTS (SELECT FROM {parts} AS part, left(part, 64) AS word WHERE {condition})"
        if field.is_scalar:
            return f"EXISTS (SELECT FROM (VALUES ({value_of(field, self._arguments)})) AS one (v) WHERE {strings})"
        return self._any(field, strings, INSIDE)


def _double(value: float) -> float:
    """The double that `context_double` computes; numbers of filters do not exceed its upper bounds."""
    return 0.0 if abs(value) < 1e-300 else float(value)


def sort_expression(field: Field, key: str | None, arguments: Arguments) -> tuple[str, str]:
    """The expression to order by, and its SQL type."""
    if field.type is FieldType.STRING:
        return (
            f"r.{key}" if key else f'left(context_text({value_of(field, arguments)}), {KEY_LENGTH}) COLLATE "C"'
        ), "text"
    if field.type in NUMBERS:
        return (f"r.{key}" if key else f"context_double({value_of(field, arguments)})"), "double precision"
    return f"context_boolean({value_of(field, arguments)})", "boolean"
