"""Parses a question: words with weights, verbs, the number of records that it is about, and its id."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from gateway.kinds.find.clauses import Clause, Role, clauses_of, is_imperative
from gateway.kinds.find.verbs import ACTIONS_OF_VERB, ASKING, COMMANDS, NOUNS_TOO, OTHER
from gateway.kinds.find.words import CONDITION_WORDS, EMPTY, stem, words

#: values in a task: text in quotes, addresses, handles, emoji
_VALUES = re.compile(
    r"""'[^']{2,}'(?!\w)|"[^"]{2,}"|“[^“”]+”|‘[^‘’]+’|(?<![^\s@])[^\s@]+@[^\s@]+\.\w+|https?://\S+|(?<!\w)@[\w-]+|:\w+:"""
)
#: an id of an application: letters and digits mixed, but no amount such as 100k
_OPAQUE_ID = re.compile(r"(?=.*\d)(?=.*[a-z])(?!\d+(?:k|mb|gb|kb|am|pm|th|hrs?|days?|min)$)[a-z0-9]{4,}")
#: a readable id as one word: INC-442
_READABLE_ID = re.compile(r"\b([A-Z]{2,6})-(?=\d)")
#: words between a noun and its id
_ID_WORDS = frozenset(["id", "ids", "gid", "ts", "number", "no", "with", "the"])
#: conditions, which select some of the records
_CONDITION = re.compile(
    r"\b(?:more|less|fewer|greater|larger|bigger|higher|lower|smaller|older|newer|longer|later|earlier) than\b"
    r"|\bat (?:least|most)\b|[<>]=? ?\d"
    r"|\b(?:over|above|below|under|between|since|before|after|until|exceeding) (?:an? )?[$€£]?(?:\d|mon|tues|wednes"
    r"|thurs|fri|satur|sun|jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec|last|yesterday|noon)"
    r"|\b(?:in|within|during|for) the (?:last|past|first|next)\b"
    r"|\b(?:this|last|past|next) (?:week|month|quarter|year|night|hour|spring|summer|autumn|winter|fall)"
    r"|\b(?:today|yesterday|never|not|without|nobody|still|yet|no longer|neither)\b|\bun[a-z]{4,}(?:ed|en)\b"
    r"|(?<=s) (?:that|who|whose|which|where) \w",
    re.I,
)
_NEW = re.compile(r"(?:an?|another|one more|some new|new)\s", re.I)
_ONE_NEW = re.compile(r"(?:an?|another|one)\s", re.I)
_ALL = re.compile(r"(?:all|every|any|each|everything|everyone)\b", re.I)
#: maximum characters and words that are read of a text
MAX_CHARACTERS, _WORDS = 1000, 80
#: prepositions, after which the words describe the context of the thing asked for
_CONTEXT = frozenset(
    """
    in from to into of on at below under underneath beneath across against for about by off with without within inside
    onto over among between behind through during around via per
    """.split()  # noqa: SIM905
)
_RELATIVE = frozenset("who whom whose which that where when".split())  # noqa: SIM905
_JOINING = frozenset("and or then to".split())  # noqa: SIM905
#: plurals that mean one thing
_OF_ONE = frozenset("details contents results totals properties attributes news status address access process".split())  # noqa: SIM905

#: weights of words beside 1: in a clause that does not ask while another does; after a preposition; and of values,
#: words of conditions and nouns that are used as verbs: "file a ticket" is not about files
_ASIDE_WEIGHT, _CONTEXT_WEIGHT, _VALUE_WEIGHT = 0.4, 0.6, 0.3
#: the certainty that a verb names the task, if it is no command; and the factor for each further verb
_NO_COMMAND, _LATER_VERB = 0.3, 0.5


class Number(Enum):
    """How many records a question is about."""

    #: one, which has an id
    ONE = "one"
    #: many
    MANY = "many"
    #: not specified
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the request."""

    #: the certainty that it names the task, from 0 to 1
    weight: float
    #: the actions that it may mean
    meanings: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Question:
    """A parsed question."""

    #: stems with weights
    terms: dict[str, float] = field(default_factory=dict)
    #: the clauses that ask or command; the whole text if none does
    asked: str = ""
    #: the stems of the nouns before the first preposition of the first clause that asks, in order
    nouns: list[str] = field(default_factory=list)
    #: the verbs by their stems
    verbs: dict[str, Verb] = field(default_factory=dict)
    #: the stem of the word before an id: `task` of "task 7780"
    id_of: str | None = None
    number: Number = Number.OPEN
    #: whether it has a command
    is_command: bool = False
    #: whether it is a question: "which tickets …"
    is_asking: bool = False
    #: whether it names a new thing: "a login for our customer"
    is_new: bool = False
    #: whether it has a condition: "older than a week"
    has_condition: bool = False


def question_of(text: str) -> Question:
    """Parse a text; only the first 1,000 characters are read."""
    text = text[:MAX_CHARACTERS]
    values = " ".join(_VALUES.findall(text))
    bare = _READABLE_ID.sub(r"\1 ", _VALUES.sub(" ", text))
    clauses = clauses_of(bare) or [Clause(bare, Role.STATEMENT)]
    reader = _QuestionReader(clauses)
    for clause in clauses:
        reader.read(clause)
    return reader.question(values)


class _QuestionReader:
    """Fills in a question from its clauses, one by one."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        asking = [each for each in clauses if each.role in (Role.REQUEST, Role.CONTINUATION)]
        self._main = asking or [each for each in clauses if each.role is Role.STATEMENT] or clauses
        self._question = Question(
            asked=" ".join(clause.text for clause in self._main), has_condition=any(map(_has_condition, clauses))
        )
        self._next_verb = 1.0
        self._words_left = _WORDS

    def question(self, values: str) -> Question:
        """The question, when all clauses are read; words in values count little."""
        question = self._question
        for word in words(values):
            if word not in EMPTY:
                question.terms.setdefault(stem(word), _VALUE_WEIGHT)
        if question.id_of in question.nouns and question.number is not Number.MANY:
            question.number = Number.ONE
        return question

    def read(self, clause: Clause) -> None:
        listed = words(clause.text)[: self._words_left]
        self._words_left -= len(listed)
        question, is_main, opens = self._question, clause in self._main, clause is self._main[0]
        if not listed:
            return
        asks = is_main and listed[0] in ASKING
        if opens:
            question.is_asking, question.is_new = asks, bool(_NEW.match(clause.text))
        self._read_words(clause, listed, is_main, opens)

    def _read_words(self, clause: Clause, listed: Sequence[str], is_main: bool, opens: bool) -> None:
        question, seen, is_context = self._question, 0, False
        head: list[str] = []
        for place, word in enumerate(listed):
            is_context = is_context or (word in _CONTEXT and seen > 0) or (word in _RELATIVE and bool(head))
            if question.id_of is None and _is_id(listed, place):
                question.id_of = _noun_before(listed[:place])
            if word in EMPTY:
                continue
            term = stem(word)
            is_verb = _is_verb(word, place, clause.role)
            if is_main and not is_verb and place == 0 and word not in COMMANDS and is_imperative(listed):
                self._note(term, frozenset([OTHER]), is_command=True)
            elif is_main and is_verb and term not in question.verbs:
                self._read_verb(word, listed, place, is_first=seen == 0 and clause.role is not Role.CONTINUATION)
            is_minor = word in CONDITION_WORDS or word.isdigit() or (is_verb and word in NOUNS_TOO)
            weight = (1 if is_main else _ASIDE_WEIGHT) * (_CONTEXT_WEIGHT if is_context else 1)
            self._weigh(term, weight * (_VALUE_WEIGHT if is_minor else 1))
            seen += 1
            if not (is_verb or is_context or word in CONDITION_WORDS):
                head.append(word)
        if opens:
            question.nouns = [stem(word) for word in head]
            is_plural = any(_is_plural(word) for word in head)
            question.is_new = bool(_ONE_NEW.match(clause.text)) if is_plural else question.is_new
            question.number = Number.MANY if is_plural or _ALL.match(clause.text) else Number.OPEN

    def _weigh(self, term: str, weight: float) -> None:
        self._question.terms[term] = max(self._question.terms.get(term, 0.0), weight)

    def _read_verb(self, word: str, listed: Sequence[str], place: int, *, is_first: bool) -> None:
        meanings = ACTIONS_OF_VERB[stem(word)]
        if "create" in meanings and listed[place + 1 : place + 2] in (["a"], ["an"], ["another"], ["new"]):
            meanings = frozenset(["create"])
        is_command = word in COMMANDS and (is_first or listed[place - 1] in _JOINING) and not self._question.is_asking
        self._note(stem(word), meanings, is_command=is_command)

    def _note(self, term: str, meanings: frozenset[str], *, is_command: bool) -> None:
        self._question.verbs[term] = Verb(self._next_verb * (1 if is_command else _NO_COMMAND), meanings)
        self._question.is_command = self._question.is_command or is_command
        self._next_verb *= _LATER_VERB if is_command else 1


def _noun_before(listed: Sequence[str]) -> str | None:
    """The stem of the last word of meaning, which names what an id is of."""
    named = [word for word in listed if not (word in EMPTY or word in _ID_WORDS or word.isdigit())]
    return stem(named[-1]) if named else None


def _has_condition(clause: Clause) -> bool:
    """Whether a clause has a condition; in circumstances, only one at its beginning counts: "since March"."""
    match = _CONDITION.search(clause.text)
    return match is not None and (clause.role is not Role.CIRCUMSTANCE or match.start() == 0)


def _is_verb(word: str, place: int, role: Role) -> bool:
    """Whether a word is used as a verb; in `task comment` and `pages` it is a noun."""
    if stem(word) not in ACTIONS_OF_VERB or (word.endswith("s") and word not in COMMANDS):
        return False
    return not (word in NOUNS_TOO and (place > 0 or role is Role.STATEMENT))


def _is_id(listed: Sequence[str], place: int) -> bool:
    """Whether the word is an id: an opaque one, or a number after a word."""
    word = listed[place]
    if _OPAQUE_ID.fullmatch(word):
        return True
    return word.isdigit() and place > 0 and listed[place - 1] not in EMPTY and not listed[place - 1].isdigit()


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us")) and word not in _OF_ONE
