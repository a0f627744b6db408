"""Storms and agents in full, each with its report: `make faults`.

    python -m tests.faults [--seeds 1,2,3] [--jobs 2000] [--faults 45] [--only events]

Writes REPORT.md beside this file if the storms have their full size. Exits with 1 if one of them lost, doubled or
invented something, or left the jobs of a dead worker waiting.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from tests.faults import (
    agents,
    approvals,
    batches,
    event_storm,
    exports,
    failover,
    key_storm,
    long_operations,
    metering,
    move,
    notice_storm,
    people,
    remembered_answers,
    rolling,
    rude,
    schedules,
)
from tests.faults.report import Report, document
from tests.faults.storm import storm

REPORT = Path(__file__).parent / "REPORT.md"
JOBS, FAULTS = 2000, 45
_AGENTS = """## Agents

`python -m tests.faults.agents`: twenty agents behind a load balancer of three front ends and two workers call bulk
updates as tasks of the Model Context Protocol, and create tickets between them, while both are killed.
"""
_ROLLING = """## Rolling restart

`python -m tests.faults.rolling`: two front ends and two workers are stopped and started again one after the other.
"""
_APPROVALS = """## Approvals

`python -m tests.faults.approvals`: every create waits for an approval, of which a third are denied, while everything is
struck. Lost is a job without an end or an approved one that was given up, doubled a ticket that was created twice,
untrue a ticket without an approval before it, or an end that the application denies.
"""
_BATCHES = """## Batches

`python -m tests.faults.batches`: batches of creates, updates and reads are accepted and run by two front ends and two
workers while everything is struck. Lost is an operation without a result, untrue a result that the application denies.
"""
_EXPORTS = """## Exports

`python -m tests.faults.exports`: lists are exported while everything is struck, and the files are read at once.
Lost is an export without a file, untrue a complete response that is not exactly the application's records.
"""
_FAILOVER = """## Failover

`python -m tests.faults.failover`: two front ends and two workers on PostgreSQL with a synchronous standby; creates are
submitted under keys at both front ends when the primary is lost, and the standby is promoted a second later. The
primary is killed with `kill -9`, or all its processes stop without a word, as with a machine that has lost its power.
The processes have both hosts in their URL, or the address of a proxy that is pointed at the standby.
"""
_KEYS = """## Key service away

`python -m tests.faults.key_storm`: connectors are called through a front end and two workers, whose encryption key a
key service has wrapped. The service cuts its connections, and then leaves requests without an answer, for half of the
time for which keys are held, as an hour is of the two hours by default. A worker is killed meanwhile, and waits for the
service. Afterwards all processes get another key and the data keys are wrapped again, while the calls go on.
"""
_MOVE = """## Organization moved

`python -m tests.faults.move`: an organization is exported and imported by another gateway, with its own PostgreSQL,
Redis, files and keys, while its clients write, submit jobs and export lists to files. Each gateway has an application
that records its requests. A write that is refused is repeated under its key, at the other gateway after the import.
Lost is a write or a job that neither gateway has done, doubled one that was done twice or at both, untrue an answer
that the applications deny.
"""
_LONG = """## Long operations

`python -m tests.faults.long_operations`: tickets are created and updated in portions that the application runs in the
background, while everything is struck. Lost is an operation without an end or without a line for each ticket, doubled a
ticket that was created twice, untrue a line or an end that the application denies.
"""
_SCHEDULES = """## Schedules

`python -m tests.faults.schedules`: slots of schedules come while everything is struck; each run creates a ticket. Lost
is a slot without a job, doubled a slot with two jobs or a ticket that no job has created.
"""
_METERING = """## Usage

`python -m tests.faults.metering`: calls, jobs, batches, schedules and reads, while workers and front ends are killed.
Lost is a call that the application received and usage does not have, doubled one that usage has twice, untrue a
difference between usage and the audit log or a call that the application did not receive. A killed front end may hold
the entries of reads of the last half second; these are counted apart.
"""
_EVENTS = """## Events

`python -m tests.faults.event_storm`: records of two organizations change, and the changes are delivered to webhooks,
while workers and the front end are killed and receivers answer 429, 500, 410, or later than a sender waits.
"""
_NOTICES = """## Notices

`python -m tests.faults.notice_storm`: an application changes its records and sends notices, of which a part is lost
and a part comes twice, while workers and front ends are killed and receivers answer 429, 500, 410, or later than a
sender waits. In the end the copy has every record as the application has it, the feed an event of each, and two
receivers have every event. Changes of a record that follow each other before it is read again are one event.
"""
_PEOPLE = """## People

`python -m tests.faults.people`: people with own connectors of five kinds call them over HTTP and by tools of agents,
themselves and by the sessions of a client, as jobs and by schedules, search their copies, download files and
read events, while workers and front ends are killed. Each account of the stand-in application says who has called it
and whose records it sends. Untrue is a call with another's credential, a record or an event that is another's, or an
answer to a call of another's connector or job; lost a call without an end.
"""
_REMEMBERED = """## Remembered answers

`python -m tests.faults.remembered_answers`: two front ends remember answers of a connector while it is written to and
processes are struck. An answer is stale when it is older than a write that the application had before it was asked for.
"""


_RUDE = """## Rude applications

`python -m tests.faults.rude`: the sandbox plays every kind and is rude in one way after the other. Every list is read
to its end, and every copy is loaded, completed by polite runs, and synchronized twice again. A fault is a record that
is missing without a word or deleted though it exists, or an error of the gateway's own; the table counts them.
"""


#: name → the head of its section, and the function that runs it
_OTHERS: Mapping[str, tuple[str, Callable[[], Coroutine[Any, Any, Any]]]] = {
    "agents": (_AGENTS, lambda: agents.agents(agents.TASKS, agents.KILLS)),
    "approvals": (_APPROVALS, lambda: approvals.approval_storm(approvals.APPROVALS, approvals.FAULTS)),
    "batches": (_BATCHES, lambda: batches.batch_storm(batches.BATCHES, batches.OPERATIONS, batches.FAULTS)),
    "exports": (_EXPORTS, lambda: exports.export_storm(exports.EXPORTS, exports.RECORDS, exports.FAULTS)),
    "failover": (_FAILOVER, lambda: failover.failovers(failover.JOBS)),
    "keys": (_KEYS, lambda: key_storm.key_storm(key_storm.CONNECTORS, key_storm.AWAY)),
    "move": (_MOVE, lambda: move.move_storm(move.WRITES, move.QUEUED)),
    "long_operations": (
        _LONG,
        lambda: long_operations.long_storm(long_operations.OPERATIONS, long_operations.TICKETS, long_operations.FAULTS),
    ),
    "metering": (_METERING, lambda: metering.metering_storm(metering.CALLS, metering.FAULTS)),
    "schedules": (_SCHEDULES, lambda: schedules.schedule_storm(schedules.SCHEDULES, schedules.SLOTS, schedules.FAULTS)),
    "events": (_EVENTS, lambda: event_storm.storm(event_storm.CHANGES, event_storm.KILLS)),
    "notices": (_NOTICES, lambda: notice_storm.notices(notice_storm.CHANGES, notice_storm.KILLS)),
    "people": (_PEOPLE, lambda: people.people_storm(people.PEOPLE, people.CALLS, people.FAULTS)),
    "rolling": (_ROLLING, lambda: rolling.rolling(rolling.RATE)),
    "rude": (_RUDE, rude.matrix),
    "remembered_answers": (_REMEMBERED, lambda: remembered_answers.remembered_answers(remembered_answers.ROUNDS)),
}


def main() -> int:
    """Run the storms; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3", help="one storm for each, separated by commas")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--faults", type=int, default=FAULTS)
    parser.add_argument(
        "--only", choices=_OTHERS, help="one of the storms beside those of jobs; the others' sections stay"
    )
    options = parser.parse_args()
    if options.only:
        head, report = _OTHERS[options.only][0], _reported(options.only)
        REPORT.write_text(replaced(REPORT.read_text(), _section(head, report)))
        return 0 if report.is_clean else 1
    reports: dict[int, Report] = {}
    for seed in map(int, options.seeds.split(",")):
        print(f"storm of seed {seed} …", file=sys.stderr, flush=True)
        reports[seed] = asyncio.run(storm(options.jobs, options.faults, seed))
        print(reports[seed].table(), flush=True)
    others = {name: _reported(name) for name in _OTHERS}
    if (options.jobs, options.faults) == (JOBS, FAULTS):
        sections = (_section(_OTHERS[name][0], report) for name, report in others.items())
        REPORT.write_text("\n".join([document(reports), *sections]))
    are_good = all(each.is_clean and each.is_quick for each in reports.values())
    return 0 if are_good and all(report.is_clean for report in others.values()) else 1


def _reported(name: str) -> Any:
    report = asyncio.run(_OTHERS[name][1]())
    print(report.table(), flush=True)
    return report


def _section(head: str, report: Any) -> str:
    return f"{head}\n```\n{report.table()}\n```\n"


def replaced(text: str, section: str) -> str:
    """The report with this section, which replaces the one with the same heading."""
    heading = section.partition("\n")[0]
    before, found, after = text.partition(f"{heading}\n")
    if not found:
        return f"{text.rstrip()}\n\n{section}"
    rest = after.partition("\n## ")
    return before + section + (f"\n## {rest[2]}" if rest[1] else "")


if __name__ == "__main__":
    sys.exit(main())
