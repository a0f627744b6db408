"""Ready-made records: values that look like life for the fields that a spec lists, the same for the same seed."""

import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from gateway.kinds.members import JsonSchema
from gateway.sandbox import words

FieldType = str | JsonSchema

#: all ready-made records are from this span: long past, so that exports and filters see nothing from the future
_BEGINNING = datetime(2025, 1, 6, 8, 0, tzinfo=UTC).timestamp()
_SPAN = 300 * 86_400.0

_PEOPLE = ("user", "contact", "lead", "member")
_FIRMS = ("organization", "compan", "account", "workspace")
_TROUBLES = ("incidents", "alerts", "escalations")
_SALES = ("deals", "opportunity")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def iso_time(moment: float) -> str:
    """Unix time as most applications write it."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Style:
    """How an application writes ids and times, and which of its fields point to which table."""

    id_of: Callable[[str, int], int | str]
    time: Callable[[float], str] = iso_time
    #: field → table
    references: Mapping[str, str] = field(default_factory=dict)
    #: how many records a table starts with
    count_of: Callable[[str], int] = lambda table: 40


class Making:
    """One record being made: its own source of chance, and what its fields must agree on."""

    def __init__(self, style: Style, seed: str, table: str, number: int) -> None:
        self.style, self.table, self.number = style, table, number
        self.chance = random.Random(f"{seed}/{table}/{number}")  # noqa: S311 - made-up data, the same every time
        self.id = style.id_of(table, number)
        self.created = _BEGINNING + _SPAN * number / (style.count_of(table) + 1) + self.chance.randrange(3600)
        self.updated = self.created + self.chance.randrange(20 * 86_400)
        self.first, self.last = self.pick(words.FIRST_NAMES), self.pick(words.LAST_NAMES)
        self.firm = f"{words.COMPANIES[number % len(words.COMPANIES)]}{_ordinal(number // len(words.COMPANIES))}"

    def pick(self, choices: Any) -> Any:
        return self.chance.choice(choices)

    def text(self, sentences: int = 2) -> str:
        return " ".join(self.chance.sample(words.SENTENCES, sentences))

    def headline(self) -> str:
        return f"The {self.pick(words.PRODUCTS)} {self.pick(words.PROBLEMS)}"

    def refers(self, name: str) -> int | str | None:
        """The id of some record that the field points to, or None where it points nowhere known."""
        table = self.style.references.get(name)
        return self.style.id_of(table, self.chance.randint(1, self.style.count_of(table))) if table else None

    @property
    def name(self) -> str:
        if any(part in self.table.lower() for part in _PEOPLE):
            return f"{self.first} {self.last}"
        if any(part in self.table.lower() for part in _FIRMS):
            return self.firm
        if self.table.lower() in _TROUBLES:
            return self.headline()
        if self.table.lower() in _SALES:
            return f"{self.firm}: {self.pick(words.PRODUCTS)}"
        return f"{words.TOPICS[self.number % len(words.TOPICS)]}{_ordinal(self.number // len(words.TOPICS))}"

    @property
    def email(self) -> str:
        return f"{self.first}.{self.last}.{self.number}@example.com".lower().encode("ascii", "ignore").decode()


def made(making: Making, fields: Mapping[str, FieldType]) -> dict[str, Any]:
    """A record with every one of the fields."""
    return {name: _value(making, name, declared) for name, declared in fields.items()}


def blank(fields: Mapping[str, FieldType]) -> dict[str, Any]:
    """A record before its members are filled in."""
    return {name: _empty(declared) for name, declared in fields.items()}


def _value(making: Making, name: str, declared: FieldType) -> Any:
    if isinstance(declared, dict):
        return making.pick(declared["enum"]) if "enum" in declared else _empty(declared)
    types = _TYPES.get(declared.rstrip("?").split("<")[0], (object,))
    referred = making.refers(name)
    if referred is not None and isinstance(referred, types):
        return referred
    for value in _values_of(name):
        found = value(making)
        if found is None and declared.endswith("?"):
            return None
        # A rule made for text must not put text where the spec has an object.
        if isinstance(found, types) and not (isinstance(found, bool) and bool not in types):
            return found
    return _empty(declared)


@cache
def _values_of(name: str) -> tuple[Callable[[Making], Any], ...]:
    """The rules for a field of this name, best first."""
    plain = name.replace("_", "").lower()
    return tuple(value for pattern, value in _VALUES if pattern.search(plain))


def _empty(declared: FieldType) -> Any:
    if isinstance(declared, dict):
        return declared["enum"][0] if declared.get("enum") else None
    if declared.endswith("?") and declared != "boolean?":
        return None
    empties: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    found = empties.get(declared.rstrip("?").split("<")[0])
    return found.copy() if isinstance(found, list | dict) else found


def _ordinal(number: int) -> str:
    return f" {number + 1}" if number else ""


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


#: what a field of this name holds, names in lower case without underscores; the first that fits the type wins
_VALUES: tuple[tuple[re.Pattern[str], Callable[[Making], Any]], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"^(created|datecreated)$", lambda making: int(making.created)),
        (r"^(updated|dateupdated|generatedtimestamp|timestamp)$", lambda making: int(making.updated)),
        (r"^(created(at|time|date)|createdate)$", lambda making: making.style.time(making.created)),
        (r"(updated(at|time)|modified(at|date)|modifieddate|modstamp|editedtime)$", lambda m: m.style.time(m.updated)),
        (r"^(deletedat|duea?t?|dueon|.*(solved|resolved|archived|completed)at)$", lambda making: None),
        (r"at$", lambda making: making.style.time(making.updated) if making.number % 2 else None),
        # Of fields that are numbers the time is a Unix time.
        (r"^createdat$", lambda making: int(making.created)),
        (r"(updated|modified)at$", lambda making: int(making.updated)),
        (r"^(closedate|lastactivitydate|startdate|enddate|activitydate)$", lambda m: m.style.time(m.updated)[:10]),
        (r"(date|datetime)$", lambda making: making.style.time(making.updated)),
        (r"^(firstname)$", lambda making: making.first),
        (r"^(lastname)$", lambda making: making.last),
        (r"^(username|email|emailaddress)$", lambda making: making.email),
        # an id beside the one by which the kind finds records: a number, or a global one
        (r"^(id|databaseid)$", lambda making: 10_000 + making.number),
        (r"^(id|nodeid)$", lambda making: f"{making.table}-{making.number}"),
        (r"^(login|slug)$", lambda making: f"{_slug(making.name)}-{making.number}"),
        (r"^(tagname|version)$", lambda making: f"v1.{making.number}"),
        (r"^(sha|oid)$", lambda making: f"{zlib.crc32(making.table.encode()):08x}{making.number:032x}"),
        (r"phone$", lambda making: f"+49 30 55{making.number:05d}"),
        (r"^(alias)$", lambda making: making.first.lower()),
        (r"^(company|companyname)$", lambda making: making.firm),
        (r"(^|rawdisplay|display|real|raw)name$|^masterlabel$|^dealname$", lambda making: making.name),
        (r"^(rawtitle|title)$", lambda m: m.pick(words.JOB_TITLES) if m.table in ("contacts", "leads") else m.name),
        (r"^(rawsubject|subject|content|headline)$", lambda making: making.headline()),
        (r"^htmlbody$|^body$|^htmlnotes$", lambda making: f"<p>{making.text()}</p>"),
        (r"(description|notes|summary|text|comment|details|message|instructions|body)$", lambda m: m.text()),
        (r"^(tags|labelnames|domainnames)$", lambda m: m.chance.sample(words.TAGS, m.chance.randrange(4))),
        (r"^(domain)$", lambda making: f"{_slug(making.firm)}.example.com"),
        (r"^website$", lambda making: f"https://{_slug(making.firm)}.example.com"),
        (r"url$|permalink$", lambda making: f"https://example.com/{making.table}/{making.id}"),
        (r"^(priority)$", lambda making: making.pick(("urgent", "high", "normal", "low"))),
        (r"color$", lambda making: making.pick(words.COLORS)),
        (r"city$", lambda making: making.pick(words.CITIES)),
        (r"country$", lambda making: making.pick(words.COUNTRIES)),
        (r"street$", lambda making: f"{making.pick(words.STREETS)} {making.number % 120 + 1}"),
        (r"postalcode$", lambda making: f"{10_000 + making.number % 80_000}"),
        (r"^industry$", lambda making: making.pick(words.INDUSTRIES)),
        (r"^(ianatimezone|timezone|tz)$", lambda making: "Europe/Berlin"),
        (r"^locale$", lambda making: "en-us"),
        (r"^(contenttype)$", lambda making: "application/octet-stream"),
        (r"^externalid$", lambda making: f"ext-{making.number:05d}" if making.number % 5 == 0 else None),
        (r"^(amount|annualrevenue|expectedrevenue)$", lambda making: making.chance.randrange(1, 900) * 100),
        (r"^(probability|defaultprobability)$", lambda making: making.chance.randrange(0, 11) * 10),
        (r"^(position|rank|sortorder|number)$", lambda making: making.number),
        (r"(count|members|employees|stations|replies|reopens)$", lambda making: making.chance.randrange(0, 12)),
        (r"minutes|workload", lambda making: making.chance.randrange(0, 600)),
        (
            r"^(active|verified|ispublic|isactive|allow\w+|queryable|enduservisible|inallbrands|islatest)$",
            lambda m: True,
        ),
        (r"^(ismember|ischannel|createable|updateable|searchable|isemailconfirmed|public)$", lambda making: True),
        (r"^(default|isgeneral)$", lambda making: making.number == 1),
    )
)
