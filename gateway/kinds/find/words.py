"""The words of English questions: one spelling for each, their stems, and words without a meaning for the search."""

import re
from functools import lru_cache

import snowballstemmer

_STEMMER = snowballstemmer.stemmer("english")
#: the ending of a word after an apostrophe
_ENDING = re.compile(r"['’](s|re|ve|ll|d|m|t)?$")
#: a word: letters and digits, with an apostrophe
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
#: different spellings and wordings with one meaning, and their replacement
_SPELLINGS = (
    (re.compile(r"\be-mail", re.I), "email"),
    (re.compile(r"\bon[- ]call\b", re.I), "oncall"),
    (re.compile(r"\bto-?dos?\b", re.I), "todo"),
    (re.compile(r"\bsub-(?=[a-z])", re.I), "sub"),
    # British spellings become American ones
    (
        re.compile(r"\b(organ|categor|priorit|custom|summar|recogn|synchron|author|final|real)is(?=e|ing|ation)", re.I),
        r"\1iz",
    ),
    (re.compile(r"\b(col|behavi|fav|lab|neighb|hon)our", re.I), r"\1or"),
    (re.compile(r"\b(cent|met|theat)re(?=s?\b)", re.I), r"\1er"),
    (re.compile(r"\b(cancel|label|model|travel|signal)l(?=ed|ing)", re.I), r"\1"),
    (re.compile(r"\benquir", re.I), "inquir"),
    (re.compile(r"\b(catalog|dialog)ue", re.I), r"\1"),
    (re.compile(r"\blicence", re.I), "license"),
    (re.compile(r"\bprogramme(?=s?\b)", re.I), "program"),
    (re.compile(r"\banalyse", re.I), "analyze"),
    # compounds become two words, also in camel case
    (re.compile(r"(?<=[a-z])(?=[A-Z][a-z])"), " "),
    (re.compile(r"\bhelp-?(desk|cent)", re.I), r"help \1"),
    # requests to see something
    (re.compile(r"\b(?:give|tell|get|bring|hand) (?:me|us)\b", re.I), "show"),
    # "have to do" is a to-do; "everybody in" and "who is in" are people
    (re.compile(r"\b(?:(?:i|we) (?:still )?(?:have|need|have got)|left|things|work) to do\b", re.I), "todo"),
    (re.compile(r"\bevery(?:one|body)\b(?= (?:who|on|in|at|of)\b)", re.I), "people"),
    (re.compile(r"\blook(s|ed|ing)? up\b", re.I), "lookup"),
    (re.compile(r"\blook(s|ed|ing)? for\b", re.I), "find"),
    (re.compile(r"\bwho(?: is|'s| are| works?) (?:in|at|on)\b", re.I), "people in"),
    (re.compile(r"\bwho (?:can|may) (?:see|access|use|get at)\b", re.I), "people in"),
    # the name of a channel becomes "channel"; "#12" is an id
    (re.compile(r"(?<![\w&])#[a-z][\w-]*", re.I), "channel"),
)
#: matches any of these spellings; most texts have none
_RESPELLED = re.compile(
    "|".join(f"(?{'i' if pattern.flags & re.I else ''}:{pattern.pattern})" for pattern, _ in _SPELLINGS)
)

#: words without a meaning for the search
EMPTY = frozenset(
    """
    a about above after again all along already also always am an and another any anybody anymore anyone anything are as
    at away back be been before behind being below between both but by can could did do does doing done down during each
    either else ever every everybody everyone everything exactly few for from further get go goes going got had has have
    having he her here him his how i if in inside into is it its itself just knows like look may maybe me might mine
    more most much must my need needs neither never no nobody nor not now of off on one ones onto or other our
    ours out over own per please really s same shall she should so some somebody someone something soon still such t
    than that the their them then there these they thing things this those through till to too under until up upon us
    usually very via want wants was we were what when where whether which while who whom whose why will with within
    without would yes yet you your yours
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
#: words of conditions, such as times, which seldom distinguish operations
CONDITION_WORDS = frozenset(
    """
    january february march april june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday today yesterday tomorrow week weeks month months year years day days hour hours minute
    minutes last next past noon morning evening recently lately quarter older newer earlier later bigger smaller larger
    greater higher lower fewer longer shorter least
    """.split()  # noqa: SIM905
)
#: common words, which name no thing that a task is about
COMMON_WORDS = frozenset(
    """
    able actually allow appear ask asked asks bad become becomes begin believe big bit bring came clear come comes
    coming consider course different easy end enough fact fall feel felt few fine first follow full gave give given
    gives goes good great grow happen happened happens hard hear heard hold important keep kept kind knew know known
    large late least leave left let lie like little live long look looked looking looks lot made make makes making mean
    means meet moment move new nice number offer old own part people piece place play possible probably put quick
    quickly quite ran reach ready real remain remember right run runs said sat say says second see seem seems seen set
    sit small sort stand start stay stays stop straight sure take taken takes tell things think third thought told took
    tried try trying turn two understand use used uses wait walk way well went whole wish wonder work works wrong young
    one three four five
    """.split()  # noqa: SIM905
)


def words(text: str) -> list[str]:
    """The words of a text, in lower case and in one spelling."""
    if _RESPELLED.search(text):
        for pattern, spelling in _SPELLINGS:
            text = pattern.sub(spelling, text)
    return [_ENDING.sub("", word).replace("’", "'") for word in _WORD.findall(text.lower())]


#: words for people, whose stems would otherwise be those of verbs
_PEOPLE = {"requester": "requester", "requesters": "requester", "responder": "responder", "responders": "responder"}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its ending: `assigned` and `assigning` are `assign`."""
    if word in _PEOPLE:
        return _PEOPLE[word]
    stemmed: str = _STEMMER.stemWord(word)
    return stemmed


@lru_cache(maxsize=20_000)  # many operations have params with the same name
def stems(text: str) -> tuple[str, ...]:
    """The stems of a text's words, without those in `EMPTY`."""
    return tuple(stem(word) for word in words(text) if word not in EMPTY)
