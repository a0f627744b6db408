"""Everyday words that stand for each other, whatever the application: `firm` for `company`, `ring` for `call`."""

from collections import defaultdict
from collections.abc import Mapping

from gateway.operation_search.words import stem

#: one group a line; a word may stand in several
_GROUPS = """
    company firm business organization enterprise corporation employer
    person people human individual somebody man woman lady gentleman guy folk
    colleague coworker workmate teammate employee staff personnel crew
    customer client buyer purchaser shopper consumer
    boss manager supervisor chief director
    file document pdf upload attachment spreadsheet
    picture image photo photograph screenshot drawing illustration mockup logo
    message post note remark comment line
    reply answer response respond
    request enquiry inquiry question
    problem issue trouble complaint defect fault error bug
    outage downtime crash failure breakdown disruption interruption incident emergency
    broken down dead failing crashed
    meeting appointment visit call date session
    phone telephone mobile ring call dial
    email mail address
    job task work chore duty assignment todo errand item
    deadline due date
    finished done complete completed closed solved resolved ready
    unfinished open pending outstanding unresolved unsolved incomplete
    late overdue delayed behind
    urgent important critical pressing
    label tag keyword marker flag sticker
    column field property attribute
    table list overview register
    row entry record line
    page document article sheet text
    paragraph passage sentence section
    heading headline title caption
    name title call named
    room channel group chat
    link url address website web
    delete remove erase discard drop wipe scrap
    trash bin rubbish wastebasket recycle
    create add make set start open begin launch establish
    update change edit modify alter adjust amend revise
    correct fix right rectify repair
    move shift transfer drag push
    assign hand give pass delegate allocate
    add append insert put attach stick
    send write tell inform notify let
    find search locate look seek lookup
    see show display view look
    join belong member membership
    invite bring let include
    kick expel throw exclude ban
    rename call name
    history log audit trail timeline chronicle
    rule automation trigger workflow
    template boilerplate macro canned
    rating score review feedback opinion survey satisfaction
    speed time duration long fast quick quickly
    price cost amount sum value money revenue worth
    sale deal opportunity contract
    prospect lead interested
    status state stage phase step
    role function responsibility duty
    rank level degree
    team group squad crew department unit
    calendar schedule diary rota roster
    shift duty standby oncall
    alarm alert warning alarms
    page pager paged escalation woken
    report statistic figure analysis evaluation
    picture emoji smiley emoticon reaction
    thumbs like heart applaud
    tick check checkbox
    login account access
    address location place where
    city town
    country nation
    project undertaking initiative campaign
    board kanban
    archive retire shelve
    copy duplicate clone
    size big large length
    owner responsible charge
    creator author wrote
    new latest recent newest lately
    old older oldest
    bottom end below
    top head
"""


def _groups() -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = defaultdict(set)
    for line in _GROUPS.strip().splitlines():
        words = line.split()
        for word in words:
            groups[stem(word)].add(f"~{words[0]}")
    return {term: frozenset(names) for term, names in groups.items()}


#: by stem, the groups that a word is in; names of groups begin with `~`, so that they are never stems
GROUPS: Mapping[str, frozenset[str]] = _groups()
