"""English as people ask in it: words, their stems, and the verbs that mean an action."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import snowballstemmer

_STEMMER = snowballstemmer.stemmer("english")
#: a word: letters and digits, and the marks that hold names and addresses together
_ENDING = re.compile(r"['’](s|re|ve|ll|d|m|t)?$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
#: ways of writing one thing that differ in more than their ends
_SPELLINGS = (
    (re.compile(r"\be-mail", re.I), "email"),
    (re.compile(r"\bon[- ]call\b", re.I), "oncall"),
    (re.compile(r"\bto-?dos?\b", re.I), "todo"),
    (re.compile(r"\bsub-(?=[a-z])", re.I), "sub"),
    (re.compile(r"\bincident\.io\b", re.I), "incidentio"),
    (re.compile(r"\bcentre\b", re.I), "center"),
    (re.compile(r"\bcolour", re.I), "color"),
    # whoever says so wants to see something
    (re.compile(r"\b(?:give|tell|get|bring|hand) (?:me|us)\b", re.I), "show"),
    # what I have to do is a to-do, and everybody on or in something are its people
    (re.compile(r"\b(?:(?:i|we) (?:still )?(?:have|need|have got)|left|things|work) to do\b", re.I), "todo"),
    (re.compile(r"\bevery(?:one|body)\b(?= (?:who|on|in|at|of)\b)", re.I), "people"),
    (re.compile(r"\blook(s|ed|ing)? up\b", re.I), "lookup"),
    # who is in something, or gets at it, are its people
    (re.compile(r"\bwho(?: is|'s| are| works?) (?:in|at|on)\b", re.I), "people in"),
    (re.compile(r"\bwho (?:can|may) (?:see|access|use|get at)\b", re.I), "people in"),
    # as people write channels in chat; a number after it is an id
    (re.compile(r"(?<!\w)#(?=[a-z])", re.I), "channel "),
)

#: words that say nothing of what is wanted
EMPTY = frozenset(
    """
    a about above after again all along already also always am an and another any anybody anymore anyone anything are as
    at away back be been before behind being below between both but by can could did do does doing done down during each
    either else ever every everybody everyone everything exactly few for from further get go goes going got had has have
    having he her here him his how i if in inside into is it its itself just knows like look may maybe me might mine
    more most much must my need needs neither never no nobody nor not now of off on one ones onto or other our
    ours out over own per please really s same say shall she should so some somebody someone something soon still such t
    than that the their them then there these they thing things this those through till to too under until up upon us
    usually very via want wants was we were what when where whether which while who whom whose why will with within
    without would yes yet you your yours
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
#: words that ask, rather than tell to do
ASKING = frozenset(["what", "which", "who", "whom", "whose", "when", "where", "why", "how", "is", "are", "was", "were",
                    "did", "does", "has", "have", "any", "anyone", "anybody"])  # fmt: skip

#: what verbs ask for: an action, and how retry_until_available
_VERBS: Mapping[str, Mapping[str, float]] = {
    "list": {"list": 1, "api_search": 0.5, "context_store_search": 0.6, "get": 0.4},
    "get": {"get": 1, "list": 0.65, "download": 0.4, "api_search": 0.5, "context_store_search": 0.5},
    "api_search": {"api_search": 1, "context_store_search": 0.95, "list": 0.9, "get": 0.4},
    "create": {"create": 1, "update": 0.4},
    "update": {"update": 1, "create": 0.4, "delete": 0.2},
    "delete": {"delete": 1, "update": 0.4},
    "download": {"download": 1, "get": 0.5, "list": 0.2},
}
#: the verbs by the action that each asks for first
_WORDS_OF = {
    "list": """
        list show see browse enumerate overview count page display view report
    """,
    "get": """
        get fetch read retrieve pull detail inspect describe open check tell grab
    """,
    "api_search": """
        search find lookup query locate filter match seek
    """,
    "create": """
        create add make new post send write start put raise register insert append build comment reply respond answer
        attach invite schedule announce tell notify ask leave give draft submit log book plan react pin open file let
    """,
    "update": """
        update change edit modify set rename assign reassign mark move close solve resolve reopen complete finish
        correct fix adjust replace tick check uncheck toggle extend postpone reschedule escalate merge convert turn
        raise lower increase bump hand give make drag shift transfer restore trash archive cancel switch put tag fill
        push delay prolong shorten amend revise rewrite reword swap activate deactivate enable disable suspend promote
    """,
    "delete": """
        delete remove drop erase discard purge clear unpin untag detach retract take undo withdraw trash destroy cancel
        rid
    """,
    "download": """
        download save export fetch grab
    """,
}

#: verbs that go with anything: the action alone is what they tell
COMMON = frozenset(
    """
    list show see get find search view read fetch retrieve pull check create add make new update change edit set delete
    remove download give
    """.split()  # noqa: SIM905
)
#: words that are more often something than something to do, unless they stand first
NOUNS_TOO = frozenset(
    """
    answer bookmark change check comment display file filter fix highlight invite label log match note open page pin
    plan post query report reply schedule search start tag update view
    """.split()  # noqa: SIM905
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, each spelling in one way."""
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return [_ENDING.sub("", word).replace("’", "'") for word in _WORD.findall(text.lower())]


#: people who are not what they do
_PEOPLE = {"requester": "requester", "requesters": "requester", "responder": "responder", "responders": "responder"}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its ending: `assigned` and `assigning` are `assign`."""
    if word in _PEOPLE:
        return _PEOPLE[word]
    stemmed: str = _STEMMER.stemWord(word)
    return stemmed


@lru_cache(maxsize=20_000)  # names of params are said of many operations
def stems(text: str) -> tuple[str, ...]:
    """The stems of a text's words, without those that say nothing."""
    return tuple(stem(word) for word in words(text) if word not in EMPTY)


def _by_word(verbs: Mapping[str, str]) -> dict[str, frozenset[str]]:
    actions_of: dict[str, set[str]] = {}
    for action, listed in verbs.items():
        for verb in listed.split():
            actions_of.setdefault(verb, set()).add(action)
    return {verb: frozenset(actions) for verb, actions in actions_of.items()}


#: the actions that a verb, in the form that commands have, may mean
COMMANDS = _by_word(_WORDS_OF)
#: the same by the verb's stem, in whatever form it is
ACTIONS_OF_VERB = {
    stem(verb): frozenset().union(*(COMMANDS[each] for each in COMMANDS if stem(each) == stem(verb)))
    for verb in COMMANDS
}


def affinity(meanings: Iterable[str], action: str) -> float:
    """How well an action answers a verb of these meanings, from 0 to 1."""
    return max((_VERBS[meaning].get(action, 0.0) for meaning in meanings), default=0.0)
