"""Groups of everyday words with a similar meaning in any application: `firm` and `company`, `ring` and `call`."""

from collections import defaultdict
from collections.abc import Mapping

from gateway.kinds.find.words import stem

#: one group per line; a word may be in several groups
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
    clerk employee staff worker assistant
    newcomer newbie starter beginner
    client shopper patron caller requester
    guest visitor outsider external
    partner supplier vendor reseller contractor freelancer
    owner holder keeper responsible accountable
    expert engineer technician developer
    lawyer solicitor attorney legal
    doctor nurse patient
    teacher pupil student
    boss chief head lead leader
    everyone everybody all
    nobody none
    contact acquaintance connection
    surname lastname firstname name
    phone mobile cell number
    postcode zip street address
    reach contact call ring
    complain moan grumble complaint dissatisfied unhappy angry annoyed upset
    happy glad content satisfied pleased
    thank praise compliment
    apologise sorry
    answer reply respond react
    question ask enquire query
    explain describe tell clarify
    say state mention
    announce publish broadcast news proclaim
    warn alert notify caution
    promise commit guarantee agreement
    remind reminder nudge
    discuss talk chat conversation discussion debate
    conversation correspondence exchange dialogue thread
    chatter gossip talk posts
    write compose draft jot scribble
    read view look study
    note memo jotting minutes
    minutes protocol meeting notes
    text wording content body
    word keyword term phrase
    letter mail post
    newsletter mailing campaign
    advert advertisement promotion campaign
    trade fair exhibition conference
    offer quote proposal bid estimate
    order purchase buy
    invoice bill receipt
    payment pay paid
    contract agreement deal
    budget cost expense spending
    income revenue earnings turnover
    profit margin gain
    forecast prediction outlook expected
    target goal aim objective
    result outcome finding
    figures numbers statistics metrics
    average mean median
    total sum altogether
    count number many amount
    percentage rate share ratio
    chance probability likelihood odds
    win won success
    lose lost failure
    sign signed signature
    approve approval accept confirm
    refuse reject decline deny
    agree consent
    choose pick select option choice
    option choice value dropdown
    criteria condition filter
    category kind type sort class
    list overview inventory catalog directory
    folder directory
    archive shelve store
    backup copy duplicate
    version revision edition
    draft unfinished unpublished
    publish release launch
    template pattern sample
    guide manual handbook instruction tutorial howto
    rule policy regulation
    law legal
    step stage phase milestone
    start begin kickoff commence
    end finish close conclude stop
    pause hold suspend freeze
    resume continue reopen
    repeat again recurring
    wait waiting pending queue
    queue backlog inbox waiting
    delay postpone later shift
    early soon prompt
    hurry rush urgent asap
    slow long late
    recent latest newest fresh
    outdated old obsolete stale
    today now currently present
    yesterday past previous former
    tomorrow upcoming future next
    night overnight evening
    weekend saturday sunday
    holiday vacation leave absence
    shift rota roster duty
    phone pager ring wake
    break broken fail crash
    fix repair solve mend
    damage harm impact
    severe serious grave critical major
    slight minor small
    danger risk threat
    cause reason why
    happen occur take
    discover detect find notice
    watch monitor observe track
    check verify inspect examine
    test trial try
    measure gauge
    compare difference
    connect link relate associate attach tie
    belong part member
    parent above superior
    child below sub subordinate
    inside within
    section part chapter
    row line record
    column field lane
    cell box
    tick check mark
    colour paint shade
    icon symbol emoji
    logo brand label
    picture cover banner
    sound audio video
    file attachment upload download
    open view read
    save store keep
    download fetch export
    upload import
    print printed
    send deliver dispatch submit
    receive get obtain
    share give distribute
    hide conceal private secret confidential
    public visible open
    secret private internal confidential
    lock block prevent restrict
    allow permit access grant
    login sign account credential
    password security twofactor
    admin administrator superuser
    role permission right
    invite add join welcome
    leave quit exit depart
    remove delete take
    forbid ban exclude
    bring move carry
    drop throw discard
    clear clean tidy empty
    fill complete enter
    enter type input
    correct right accurate
    wrong incorrect mistaken false
    mistake error typo slip
    spelling typo misspelt
    good positive great
    bad negative poor
    best top highest favourite
    worst lowest bottom
    first initial original
    last final latest
    main primary default
    extra additional further other
    missing absent lacking without
    empty blank vacant
    full complete whole entire
    single one individual
    several multiple many bulk batch
    group bunch set collection
    mass bulk batch hundreds
    plan schedule agenda programme
    board kanban wall
    list checklist todo
    goal objective purpose aim
    subject topic theme heading
    summary abstract brief digest
    detail information data fact
    background history story past
    timeline chronicle chronology sequence
    activity action event deed
    visit meeting trip
    place location venue where
    office site branch
    country region territory
    language locale translation
    time hour clock
    duration length long
    deadline due until
    priority urgency importance
    speed pace fast quick
    quality rating score
    opinion view feedback verdict
    vote like thumbs
    survey poll questionnaire form
    form questionnaire sheet
    request demand wish
    need require want
    help support assist aid
    care look responsible
    handle process treat manage
    assign allocate give pass hand
    escalate raise lift
    lower reduce decrease
    increase raise grow
    split divide break
    merge combine join unite
    copy clone replicate
    swap exchange replace substitute
    switch toggle turn
    activate enable on
    deactivate disable off
    run execute perform
    trigger fire launch
    automatic automated itself
    manual hand
    script query statement
    table database spreadsheet tracker
    schema structure model definition
    object entity thing
    property attribute characteristic
    product item goods article
    stock store warehouse
    car vehicle machine
    house home building
    money cash price
    job position vacancy
    career applicant candidate
    salary wage payroll
"""


def _groups() -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = defaultdict(set)
    for line in _GROUPS.strip().splitlines():
        words = line.split()
        for word in words:
            groups[stem(word)].add(f"~{line.strip()}")
    return {term: frozenset(names) for term, names in groups.items()}


#: the groups of each stem; names of groups begin with `~`, so that they differ from stems
GROUPS: Mapping[str, frozenset[str]] = _groups()
