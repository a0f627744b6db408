"""The verbs of requests, and the actions that they ask for."""

from collections.abc import Mapping

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.words import stem

#: first words of questions
ASKING = frozenset(["what", "which", "who", "whom", "whose", "when", "where", "why", "how", "is", "are", "was", "were",
                    "did", "does", "has", "have", "any", "anyone", "anybody"])  # fmt: skip

#: the standard actions that change something
WRITES = frozenset(["create", "update", "delete"])
#: the meaning of a verb that is not listed
OTHER = "other"
#: the verbs, by the action that they ask for
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
        create add make post send write start put raise register insert append build comment reply respond answer
        attach invite schedule announce tell notify ask leave give draft submit log book plan react pin open file let
        stick pop jot note label inform remind message register enter record establish launch found begin set compose
        upload share contribute introduce issue bring include join say explain define declare publish import copy
        duplicate clone build order request
    """,
    "update": """
        update change edit modify set rename assign reassign mark move close solve resolve reopen complete finish
        correct fix adjust replace tick check uncheck toggle extend postpone reschedule escalate merge convert turn
        raise lower increase bump hand give make drag shift transfer restore trash archive cancel switch put tag fill
        push delay prolong shorten amend revise rewrite reword swap activate deactivate enable disable suspend promote
        label stick pass turn lock unlock block unblock hide correct cross flag categorize transform combine split
        translate paint recolour recolor publish unpublish accept approve reject decline transition link unlink connect
        raise restart reset renew sync
    """,
    "delete": """
        delete remove drop erase discard purge clear unpin untag detach retract take undo withdraw trash destroy cancel
        rid throw wipe bin scrap kick expel exclude ban unlabel unpin revoke dismiss eliminate
    """,
    "download": """
        download save export fetch grab
    """,
}

#: words that are more often nouns than verbs, except as the first word
NOUNS_TOO = frozenset(
    """
    answer bookmark change check comment display file filter fix highlight invite label log match note open page pin
    plan post query report reply schedule search start tag update view
    record request order message copy share issue flag transition link build block stick bin book import export attach
    contact project experience document list count page send set let lead work call move turn raise hand shift name
    """.split()  # noqa: SIM905
)


#: stems of verbs that few APIs have an operation for; an operation for it has the verb in its phrases
SPECIAL = frozenset(
    stem(verb)
    for verb in """
        accept acknowledge approve archive attach book buy charge clone combine convert copy deploy dial duplicate embed
        encrypt export fax follow forward hide import invite lock merge mute notify order pay phone pin print publish
        recover refund reject remind reserve restore revert roll rollback schedule share sign silence snooze split
        subscribe swap transfer translate unarchive undelete undo unfollow unlock unpin unpublish unsubscribe upload
    """.split()  # noqa: SIM905
)


def _by_word(verbs: Mapping[str, str]) -> dict[str, frozenset[str]]:
    actions_of: dict[str, set[str]] = {}
    for action, listed in verbs.items():
        for verb in listed.split():
            actions_of.setdefault(verb, set()).add(action)
    return {verb: frozenset(actions) for verb, actions in actions_of.items()}


#: the actions that a verb in its base form may mean
COMMANDS = _by_word(_WORDS_OF)
#: the actions that a verb in any form may mean, by its stem
ACTIONS_OF_VERB = {
    stem(verb): frozenset().union(*(COMMANDS[each] for each in COMMANDS if stem(each) == stem(verb)))
    for verb in COMMANDS
}


#: words that follow a command, also one whose verb is not listed here: "silence the alert"
DETERMINERS = frozenset(
    """
    the this that these those a an my our your his her their its all every each both it them me us him everyone
    """.split()  # noqa: SIM905
)


def plain_action(action: str, *, is_read: bool) -> str:
    """The standard action that an action is like: `create` for `create_many` and `duplicate`."""
    if action in _WORDS_OF or action == SEARCH_ACTION:
        return action
    like = next((COMMANDS[word] for word in action.split("_") if word in COMMANDS), frozenset())
    fallback = "list" if is_read else "update"
    return next((each for each in ("list", "get", "create", "update", "delete") if each in like), fallback)
