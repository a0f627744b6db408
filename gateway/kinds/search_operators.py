"""The operators of the query language, in one table: the parser, the schema, the console and the docs read it."""

from enum import Enum, StrEnum, auto


class Family(Enum):
    """The family of an operator, which determines the values and fields that it accepts."""

    #: compares with a JSON value
    EQUALITY = auto()
    #: compares with each JSON value of an array
    MEMBERSHIP = auto()
    #: compares numbers with numbers and text with text
    ORDER = auto()
    #: compares text with a pattern or a part of it, ignoring case
    TEXT = auto()
    #: searches for words
    WORDS = auto()
    #: searches in an array
    ARRAY = auto()
    #: joins or negates filters
    LOGIC = auto()


class Operator(StrEnum):
    """Each operator with its family, its label in the console, and its meaning in the schema and the docs."""

    family: Family
    label: str
    meaning: str

    def __new__(cls, name: str, family: Family, label: str, meaning: str) -> "Operator":
        member = str.__new__(cls, name)
        member._value_, member.family, member.label, member.meaning = name, family, label, meaning
        return member

    EQ = "eq", Family.EQUALITY, "is", "the field equals the value; null matches missing fields"
    NEQ = "neq", Family.EQUALITY, "is not", "the field does not equal the value"
    GT = "gt", Family.ORDER, "greater than", "greater than"
    GTE = "gte", Family.ORDER, "at least", "greater than or equal"
    LT = "lt", Family.ORDER, "less than", "less than"
    LTE = "lte", Family.ORDER, "at most", "less than or equal"
    IN = "in", Family.MEMBERSHIP, "is one of (a, b)", "the field equals one of an array of values"
    LIKE = (
        "like",
        Family.TEXT,
        "matches % and _",
        "text with % for any run and _ for one character; without either, contains; case is ignored",
    )
    STARTSWITH = "startswith", Family.TEXT, "begins with", "text begins with the value; case is ignored"
    ENDSWITH = "endswith", Family.TEXT, "ends with", "text ends with the value; case is ignored"
    CONTAINS = "contains", Family.TEXT, "contains", "text contains the value; case is ignored"
    KEYWORD = "keyword", Family.WORDS, "has any of the words", "any of the words occurs"
    FUZZY = (
        "fuzzy",
        Family.WORDS,
        "has all of the words",
        "all of the words occur, in any order; the beginning of a word is enough",
    )
    ARRAY_CONTAINS = "array_contains", Family.ARRAY, "list contains", "the array holds the value"
    AND = "and", Family.LOGIC, "and", "all of the filters match"
    OR = "or", Family.LOGIC, "or", "at least one of the filters matches"
    NOT = "not", Family.LOGIC, "not", "the filter does not match"


def of_family(*families: Family) -> frozenset[Operator]:
    """The operators of these families."""
    return frozenset(operator for operator in Operator if operator.family in families)


ORDERING, MATCHING, SEEKING = of_family(Family.ORDER), of_family(Family.TEXT), of_family(Family.WORDS)
#: the operators that compare a field with a value, in the order of the console and the docs
CONDITIONS = tuple(operator for operator in Operator if operator.family is not Family.LOGIC)
