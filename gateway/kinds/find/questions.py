"""Parses a question: words with weights, verbs, the number of records that it is about, and its id."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gateway.kinds.find.clauses import Clause, Role, clauses_of, is_imperative
from gateway.kinds.find.verbs import ACTIONS_OF_VERB, ASKING, COMMANDS, NOUNS_TOO, OTHER
from gateway.kinds.find.words import COMMON_WORDS, CONDITION_WORDS, EMPTY, stem, words

#: (word, whether it is a name) → the word in the spelling of the index, or None; a name is not corrected
Spelling = Callable[[str, bool], str | None]

#: values in a task: text in quotes, addresses, handles, emoji
_VALUES = re.compile(
    r"""'[^']{2,}'(?!\w)|"[^"]{2,}"|“[^“”]+”|‘[^‘’]+’|(?<![^\s@])[^\s@]+@[^\s@]+\.\w+|https?://\S+|(?<!\w)@[\w-]+|:\w+:"""
)
#: patterns of values, and words that describe them
_HINTS = (
    (re.compile(r"[^\s@]@[^\s@]+\.\w"), "email person"),
    (re.compile(r":[a-z]\w*:"), "emoji"),
    (re.compile(r"\b[\w-]+\.(?:io|com|net|org|de|fr|co|app|dev|eu|uk)\b"), "website domain"),
    (re.compile(r"(?<=\w )[A-Z][a-z]+ [A-Z][a-z]+\b(?! \d)"), "person"),
)
#: an id of an application: letters and digits mixed, but no amount such as 100k
_OPAQUE_ID = re.compile(r"(?=.*\d)(?=.*[a-z])(?!\d+(?:k|mb|gb|kb|am|pm|th|hrs?|days?|min)$)[a-z0-9]{4,}")
#: a readable id as one word: INC-442
_READABLE_ID = re.compile(r"\b([A-Z]{2,6})-(?=\d)")
_BY_ID = re.compile(r"\b(?:by|with|the) (?:its |the )?(?:id|number)\b", re.I)
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
_DEMAND = re.compile(r"\b(?:should|must|shall|ought|has to|have to|needs? to|is to|are to|can no longer)\b", re.I)
_NEW = re.compile(r"(?:an?|another|one more|some new|new)\s", re.I)
_ONE_NEW = re.compile(r"(?:an?|another|one)\s", re.I)
_ALL = re.compile(r"(?:all|every|any|each|everything|everyone)\b", re.I)
_NAME = re.compile(r"(?<=\w )[A-Z][a-z]+")
_PRONOUN = re.compile(r"\b(?:it|its|them|that|this|those|these|there|him|her|his|their)\b", re.I)
#: maximum characters and words that are read of a text
_CHARACTERS, _WORDS = 1000, 80
#: prepositions, after which the words describe the context of the thing asked for
_CONTEXT = frozenset(
    """
    in from to into of on at below under underneath beneath across against for about by off with without within inside
    onto over among between behind through during around via per
    """.split()  # noqa: SIM905
)
_RELATIVE = frozenset("who whom whose which that where when".split())  # noqa: SIM905
#: prepositions after which an id is not of the thing asked for: "created by user 7"
_ASIDE = frozenset("by from to with for as".split())  # noqa: SIM905
_JOINING = frozenset("and or then to".split())  # noqa: SIM905
#: words before a text or a name, whose words may be unknown to the index
_TITLED = frozenset("called named titled entitled about saying says reading that".split())  # noqa: SIM905
#: plurals that mean one thing
_OF_ONE = frozenset("details contents results totals properties attributes news status address access process".split())  # noqa: SIM905

#: weights of words in clauses that do not ask, if another clause asks; a statement that a pronoun refers to has more
_CONTINUATION, _STATEMENT, _REFERRED, _CIRCUMSTANCE = 0.8, 0.5, 0.75, 0.35
#: weight of words after a preposition, and minimum weight of the noun before an id
_CONTEXT_WEIGHT, _ID_NOUN_WEIGHT = 0.55, 0.8
_CONDITION_WEIGHT, _VALUE_WEIGHT, _HINT_WEIGHT = 0.3, 0.25, 0.3
#: weight, as a noun, of a verb that is more often a noun: "file a ticket" is not about files
_NOUN_AS_VERB = 0.25
#: the loss of weight of each further word of a clause, and the minimum weight for its position
_FADING, _LEAST = 0.04, 0.6
#: certainty of a verb: each further one, one in a question, one in the middle of a clause, one that is not in base form
_LATER_VERB, _VERB_OF_A_QUESTION, _MIDDLE_VERB, _OTHER_FORM = 0.5, 0.35, 0.5, 0.3


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


@dataclass(frozen=True, slots=True)
class Reference:
    """An id in the question."""

    #: the stem of the word before it: `task` of "task 7780"
    noun: str
    #: whether the id is not of the thing asked for: "pages created by user 7"
    is_aside: bool


@dataclass(slots=True, kw_only=True)
class Question:
    """A parsed question."""

    #: stems with weights
    terms: dict[str, float] = field(default_factory=dict)
    #: the stems of the clauses that ask or command, with weights; of all clauses if none does
    asked: dict[str, float] = field(default_factory=dict)
    #: the stems that name the thing asked for
    head: set[str] = field(default_factory=set)
    #: the nouns before the first preposition, in order; None for a word that the index does not have
    nouns: list[str | None] = field(default_factory=list)
    #: the verbs by their stems
    verbs: dict[str, Verb] = field(default_factory=dict)
    #: the total weight of words that the index does not have
    unknown: float = 0.0
    reference: Reference | None = None
    number: Number = Number.OPEN
    #: whether it has a command
    is_command: bool = False
    #: whether it is a question: "which tickets …"
    is_asking: bool = False
    #: whether it names a new thing: "a login for our customer"
    is_new: bool = False
    #: whether it is a demand: "newcomers should read …"
    is_demand: bool = False
    #: whether it has a condition: "older than a week"
    has_condition: bool = False


def question_of(text: str, spelling_of: Spelling) -> Question:
    """Parse a text; only the first 1,000 characters are read."""
    text = text[:_CHARACTERS]
    values = " ".join(_VALUES.findall(text))
    bare = _READABLE_ID.sub(r"\1 ", _VALUES.sub(" ", text))
    clauses = clauses_of(bare) or [Clause(bare, Role.STATEMENT)]
    question = Question(has_condition=any(map(_has_condition, clauses)))
    reader = _QuestionReader(question, spelling_of, clauses)
    for clause in clauses:
        reader.read(clause)
    reader.read_values(values, " ".join(hint for pattern, hint in _HINTS if pattern.search(f"{bare} {values}")))
    if reader.is_one(_BY_ID.search(bare) is not None):
        question.number = Number.ONE
    return question


class _QuestionReader:
    """Fills in a question from its clauses, one by one."""

    def __init__(self, question: Question, spelling_of: Spelling, clauses: Sequence[Clause]) -> None:
        roles = {clause.role for clause in clauses}
        self._question = question
        self._spelling_of = spelling_of
        self._has_request = Role.REQUEST in roles
        self._refers_back = any(c.role is Role.REQUEST and _PRONOUN.search(c.text) for c in clauses)
        self._weights = _weights_of_roles(roles, self._refers_back)
        self._next_verb = 1.0
        self._is_first = True
        self._words_left = _WORDS
        #: whether the reference is in a clause that asks
        self._is_reference_main = False

    def read(self, clause: Clause) -> None:
        listed = words(clause.text)[: self._words_left]
        self._words_left -= len(listed)
        if not listed:
            return
        is_main = clause.role in (Role.REQUEST, Role.CONTINUATION) or (
            not self._has_request and clause.role is Role.STATEMENT
        )
        question, opens = self._question, is_main and self._is_first
        asks = is_main and listed[0] in ASKING
        if opens:
            question.is_asking, question.is_new = asks, bool(_NEW.match(clause.text))
        if is_main and not asks and _DEMAND.search(clause.text):
            question.is_demand = True
        nouns = self._read_words(clause, listed, is_main, opens)
        if opens:
            self._count(clause.text, nouns)
            self._is_first = False

    def _read_words(self, clause: Clause, listed: Sequence[str], is_main: bool, opens: bool) -> list[str]:
        """Read the words of a clause; returns its nouns before the first preposition."""
        question, names = self._question, {name.lower() for name in _NAME.findall(clause.text)}
        seen, nouns, within = 0, 0, 1.0
        head: list[str] = []
        is_title = False
        for place, written in enumerate(listed):
            is_title = is_title or (written in _TITLED and seen > 0)
            if (written in _CONTEXT and seen) or (written in _RELATIVE and nouns):
                within = _CONTEXT_WEIGHT
            if _is_id(listed, place):
                self._refer(listed, place, is_main and clause.role is not Role.CONTINUATION)
            if written in EMPTY:
                continue
            if place == 0 and is_main and written not in COMMANDS and is_imperative(listed):
                self._other_verb(stem(written))
            word = self._spelling_of(written, written in names)
            if word is None:
                says_nothing = written in names or written in CONDITION_WORDS or written in COMMON_WORDS
                is_content = not (says_nothing or any(map(str.isdigit, written)))
                is_unknown = is_main and is_content and not is_title
                question.unknown += self._weights[clause.role] * within if is_unknown else 0
                if is_unknown and opens and within == 1.0:
                    question.nouns.append(None)
                continue
            term = stem(word)
            is_verb = _is_verb(word, place, clause.role)
            if is_main and is_verb and term not in question.verbs:
                self._verb(word, term, listed, place, clause.role, is_first=seen == 0)
            role = self._weights[clause.role] * (_NOUN_AS_VERB if is_verb and word in NOUNS_TOO else 1)
            self._weigh(term, word, listed=listed, place=place, role=role, within=within, seen=seen)
            if is_main:
                question.asked[term] = question.terms[term]
            seen, nouns = seen + 1, nouns + (not is_verb)
            if opens and within == 1.0 and not is_verb:
                question.head.add(term)
                head.append(word)
                if word not in CONDITION_WORDS:
                    question.nouns.append(term)
        return head

    def _weigh(
        self, term: str, word: str, listed: Sequence[str], place: int, role: float, within: float, seen: int
    ) -> None:
        weight = role * within * max(1 - _FADING * seen, _LEAST)
        if word in CONDITION_WORDS or word.isdigit():
            weight *= _CONDITION_WEIGHT
        if _is_followed_by_id(listed, place):
            weight = max(weight, _ID_NOUN_WEIGHT * role)
        self._question.terms[term] = max(self._question.terms.get(term, 0.0), weight)

    def _verb(self, word: str, term: str, listed: Sequence[str], place: int, role: Role, *, is_first: bool) -> None:
        question, meanings = self._question, ACTIONS_OF_VERB[term]
        if "create" in meanings and listed[place + 1 : place + 2] in (["a"], ["an"], ["another"], ["new"]):
            meanings = frozenset(["create"])
        if word not in COMMANDS or role is Role.CONTINUATION:
            question.verbs[term] = Verb(self._next_verb * _OTHER_FORM, meanings)
            return
        is_command = is_first or listed[place - 1] in _JOINING
        certainty = _VERB_OF_A_QUESTION if question.is_asking else 1.0 if is_command else _MIDDLE_VERB
        question.verbs[term] = Verb(self._next_verb * certainty, meanings)
        question.is_command = question.is_command or (is_command and not question.is_asking)
        self._next_verb *= _LATER_VERB

    def _other_verb(self, term: str) -> None:
        """Note a command whose verb is not in `COMMANDS`; only operations whose phrases begin with it match."""
        self._question.verbs[term] = Verb(self._next_verb, frozenset([OTHER]))
        self._question.is_command = True
        self._next_verb *= _LATER_VERB

    def _refer(self, listed: Sequence[str], place: int, is_main: bool) -> None:
        """Note the id; an id in a clause that asks replaces one from another clause."""
        if self._question.reference is not None and (self._is_reference_main or not is_main):
            return
        before = [word for word in listed[:place] if not (word in EMPTY or word in _ID_WORDS or word.isdigit())]
        prepositions = [word for word in listed[:place] if word in _CONTEXT]
        if before:
            is_aside = bool(prepositions) and prepositions[-1] in _ASIDE
            self._question.reference = Reference(stem(before[-1]), is_aside)
            self._is_reference_main = is_main

    def _count(self, text: str, nouns: Sequence[str]) -> None:
        is_plural = any(_is_plural(word) for word in nouns)
        if is_plural:
            self._question.is_new = bool(_ONE_NEW.match(text))
        self._question.number = Number.MANY if is_plural or _ALL.match(text) else Number.OPEN

    def is_one(self, is_by_id: bool) -> bool:
        """Whether the question is about one record, whose id it names."""
        question = self._question
        if question.number is Number.MANY or (question.reference is None and not is_by_id):
            return False
        return question.reference is None or question.reference.noun in question.head

    def read_values(self, values: str, hints: str) -> None:
        """Add the words in values, and those that describe values, with small weights."""
        for text, weight in ((hints, _HINT_WEIGHT), (values, _VALUE_WEIGHT)):
            for written in words(text):
                word = None if written in EMPTY else self._spelling_of(written, False)
                if word is not None:
                    self._question.terms.setdefault(stem(word), weight)


def _has_condition(clause: Clause) -> bool:
    """Whether a clause has a condition; in circumstances, only one at its beginning counts: "since March"."""
    match = _CONDITION.search(clause.text)
    return match is not None and (clause.role is not Role.CIRCUMSTANCE or match.start() == 0)


def _weights_of_roles(roles: set[Role], refers_back: bool) -> Mapping[Role, float]:
    has_request = Role.REQUEST in roles
    statement = max(_STATEMENT, _REFERRED if refers_back else 0) if has_request else 1.0
    return {
        Role.REQUEST: 1.0,
        Role.CONTINUATION: _CONTINUATION,
        Role.STATEMENT: statement,
        Role.CIRCUMSTANCE: _CIRCUMSTANCE if has_request or Role.STATEMENT in roles else 1.0,
    }


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


def _is_followed_by_id(listed: Sequence[str], place: int) -> bool:
    following = place + 1
    while following < len(listed) and listed[following] in _ID_WORDS:
        following += 1
    return following < len(listed) and (
        listed[following].isdigit() or _OPAQUE_ID.fullmatch(listed[following]) is not None
    )


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us")) and word not in _OF_ONE
