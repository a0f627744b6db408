"""The operators of the query language, in one table: the parser, the schema, the console and the docs read it."""

from enum import Enum, StrEnum, auto


class Family(Enum):
    """The family of an operator, which decides its values and the fields that it fits."""

    #: compares with a JSON value, or with each of an array of them
    EQUALITY = auto()
    MEMBERSHIP = auto()
    #: compares numbers with numbers and text with text
    ORDER = auto()
    #: compares the text with a pattern or a part, whatever its case
    TEXT = auto()
    #: looks for words
    WORDS = auto()
    #: looks into an array
    ARRAY = auto()
    #: joins or negates filters
    LOGIC = auto()


class Operator(StrEnum):
    """Each operator with its family, and what it means in the words that callers read."""

    family: Family
    meaning: str

    def __new__(cls, name: str, family: Family, meaning: str) -> "Operator":
        member = str.__new__(cls, name)
        member._value_, member.family, member.meaning = name, family, meaning
        return member

    EQ = "eq", Family.EQUALITY, "the field equals the value; null asks for missing ones"
    NEQ = "neq", Family.EQUALITY, "the field does not equal the value"
    GT = "gt", Family.ORDER, "greater than"
    GTE = "gte", Family.ORDER, "greater than or equal"
    LT = "lt", Family.ORDER, "less than"
    LTE = "lte", Family.ORDER, "less than or equal"
    IN = "in", Family.MEMBERSHIP, "the field equals one of an array of values"
    LIKE = (
        "like",
        Family.TEXT,
        "text with % for any run and _ for one character; without either, contains; case is ignored",
    )
    STARTSWITH = "startswith", Family.TEXT, "text begins with the value; case is ignored"
    ENDSWITH = "endswith", Family.TEXT, "text ends with the value; case is ignored"
    CONTAINS = "contains", Family.TEXT, "text contains the value; case is ignored"
    KEYWORD = "keyword", Family.WORDS, "any of the words occurs"
    FUZZY = "fuzzy", Family.WORDS, "all of the words occur, in any order, beginnings enough"
    ARRAY_CONTAINS = "array_contains", Family.ARRAY, "the array holds the value"
    AND = "and", Family.LOGIC, "every one of them holds"
    OR = "or", Family.LOGIC, "at least one of them holds"
    NOT = "not", Family.LOGIC, "it does not hold"


def of_family(*families: Family) -> frozenset[Operator]:
    """The operators of these families."""
    return frozenset(operator for operator in Operator if operator.family in families)


ORDERING, MATCHING, SEEKING = of_family(Family.ORDER), of_family(Family.TEXT), of_family(Family.WORDS)
#: the operators that compare a field with a value, in the order in which people are shown them
CONDITIONS = tuple(operator for operator in Operator if operator.family is not Family.LOGIC)
