"""Ready-made records: realistic values for the fields of a spec, the same for the same seed."""

import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from gateway.kinds.members import JsonSchema
from gateway.sandbox import words

FieldType = str | JsonSchema

#: the time span of all ready-made records, in the past so that no record is newer than a request
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
    """A Unix time in the format of most applications."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Style:
    """How an application writes ids and times, and the tables that its fields refer to."""

    id_of: Callable[[str, int], int | str]
    time: Callable[[float], str]
    #: field → table
    references: Mapping[str, str]
    #: the number of ready-made records of a table
    count_of: Callable[[str], int]


class RecordMaker:
    """Makes one record: has its own random generator, and the values that several fields share."""

    def __init__(self, style: Style, seed: str, table: str, number: int) -> None:
        self.style, self.table, self.number = style, table, number
        self.chance = random.Random(f"{seed}/{table}/{number}")  # noqa: S311 - generated data, the same every time
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
        """The id of a record that the field refers to; None if the field refers to no table."""
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


def filled(maker: RecordMaker, fields: Mapping[str, FieldType]) -> dict[str, Any]:
    """A record with a value for each field."""
    return {name: _value(maker, name, declared) for name, declared in fields.items()}


def blank(fields: Mapping[str, FieldType]) -> dict[str, Any]:
    """A record with an empty value for each field."""
    return {name: _empty(declared) for name, declared in fields.items()}


def _value(maker: RecordMaker, name: str, declared: FieldType) -> Any:
    if isinstance(declared, dict):
        return _of_schema(maker, declared)
    types = _TYPES.get(declared.rstrip("?").split("<")[0], (object,))
    referred = maker.refers(name)
    if referred is not None and isinstance(referred, types):
        return referred
    for value in _values_of(name):
        found = value(maker)
        if found is None and declared.endswith("?"):
            return None
        # The value must have the type of the spec: a rule for text does not apply to an object.
        if isinstance(found, types) and not (isinstance(found, bool) and bool not in types):
            return found
    return _empty(declared)


def _of_schema(maker: RecordMaker, schema: JsonSchema) -> Any:
    """A value for a field with a JSON Schema: of its enumeration, its examples or its format."""
    if "enum" in schema or schema.get("examples"):
        return maker.pick(schema.get("enum") or schema["examples"])
    formats: Mapping[str, Callable[[], Any]] = {
        "date-time": lambda: maker.style.time(maker.updated),
        "date": lambda: iso_time(maker.updated)[:10],
        "email": lambda: maker.email,
        "uri": lambda: f"https://example.com/{maker.table}/{maker.id}",
        "uuid": lambda: str(UUID(int=maker.chance.getrandbits(128), version=4)),
    }
    return formats.get(schema.get("format", ""), lambda: _empty(schema))()


@cache
def _values_of(name: str) -> tuple[Callable[[RecordMaker], Any], ...]:
    """The rules for a field of this name, in the order of `_VALUES`."""
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


#: pattern of names, in lower case without underscores → the value; the first value with the field's type is used
_VALUES: tuple[tuple[re.Pattern[str], Callable[[RecordMaker], Any]], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"^(created|datecreated)$", lambda maker: int(maker.created)),
        (r"^(updated|dateupdated|generatedtimestamp|timestamp)$", lambda maker: int(maker.updated)),
        (r"^(created(at|time|date)|createdate)$", lambda maker: maker.style.time(maker.created)),
        (r"(updated(at|time)|modified(at|date)|modifieddate|modstamp|editedtime)$", lambda m: m.style.time(m.updated)),
        (r"^(deletedat|duea?t?|dueon|.*(solved|resolved|archived|completed)at)$", lambda maker: None),
        (r"at$", lambda maker: maker.style.time(maker.updated) if maker.number % 2 else None),
        # A time in a numeric field is a Unix time.
        (r"^createdat$", lambda maker: int(maker.created)),
        (r"(updated|modified)at$", lambda maker: int(maker.updated)),
        (r"^(closedate|lastactivitydate|startdate|enddate|activitydate)$", lambda m: m.style.time(m.updated)[:10]),
        (r"(date|datetime)$", lambda maker: maker.style.time(maker.updated)),
        (r"^(firstname)$", lambda maker: maker.first),
        (r"^(lastname)$", lambda maker: maker.last),
        (r"^(username|email|emailaddress)$", lambda maker: maker.email),
        # An id beside the one by which the kind finds records: a number, or a global id.
        (r"^(id|databaseid)$", lambda maker: 10_000 + maker.number),
        (r"^(id|nodeid)$", lambda maker: f"{maker.table}-{maker.number}"),
        (r"^(login|slug)$", lambda maker: f"{_slug(maker.name)}-{maker.number}"),
        (r"^(tagname|version)$", lambda maker: f"v1.{maker.number}"),
        (r"^(sha|oid)$", lambda maker: f"{zlib.crc32(maker.table.encode()):08x}{maker.number:032x}"),
        (r"phone$", lambda maker: f"+49 30 55{maker.number:05d}"),
        (r"^(alias)$", lambda maker: maker.first.lower()),
        (r"^(company|companyname)$", lambda maker: maker.firm),
        (r"(^|rawdisplay|display|real|raw)name$|^masterlabel$|^dealname$", lambda maker: maker.name),
        (r"^(rawtitle|title)$", lambda m: m.pick(words.JOB_TITLES) if m.table in ("contacts", "leads") else m.name),
        (r"^(rawsubject|subject|content|headline)$", lambda maker: maker.headline()),
        (r"^htmlbody$|^body$|^htmlnotes$", lambda maker: f"<p>{maker.text()}</p>"),
        (r"(description|notes|summary|text|comment|details|message|instructions|body)$", lambda m: m.text()),
        (r"^(tags|labelnames|domainnames)$", lambda m: m.chance.sample(words.TAGS, m.chance.randrange(4))),
        (r"^(domain)$", lambda maker: f"{_slug(maker.firm)}.example.com"),
        (r"^website$", lambda maker: f"https://{_slug(maker.firm)}.example.com"),
        (r"url$|permalink$", lambda maker: f"https://example.com/{maker.table}/{maker.id}"),
        (r"^(priority)$", lambda maker: maker.pick(("urgent", "high", "normal", "low"))),
        (r"color$", lambda maker: maker.pick(words.COLORS)),
        (r"city$", lambda maker: maker.pick(words.CITIES)),
        (r"country$", lambda maker: maker.pick(words.COUNTRIES)),
        (r"street$", lambda maker: f"{maker.pick(words.STREETS)} {maker.number % 120 + 1}"),
        (r"postalcode$", lambda maker: f"{10_000 + maker.number % 80_000}"),
        (r"^industry$", lambda maker: maker.pick(words.INDUSTRIES)),
        (r"^(ianatimezone|timezone|tz)$", lambda maker: "Europe/Berlin"),
        (r"^locale$", lambda maker: "en-us"),
        (r"^(contenttype)$", lambda maker: "application/octet-stream"),
        (r"^externalid$", lambda maker: f"ext-{maker.number:05d}" if maker.number % 5 == 0 else None),
        (r"^(amount|annualrevenue|expectedrevenue)$", lambda maker: maker.chance.randrange(1, 900) * 100),
        (r"^(probability|defaultprobability)$", lambda maker: maker.chance.randrange(0, 11) * 10),
        (r"^(position|rank|sortorder|number)$", lambda maker: maker.number),
        (r"(count|members|employees|stations|replies|reopens)$", lambda maker: maker.chance.randrange(0, 12)),
        (r"minutes|workload", lambda maker: maker.chance.randrange(0, 600)),
        (
            r"^(active|verified|ispublic|isactive|allow\w+|queryable|enduservisible|inallbrands|islatest)$",
            lambda m: True,
        ),
        (r"^(ismember|ischannel|createable|updateable|searchable|isemailconfirmed|public)$", lambda maker: True),
        (r"^(default|isgeneral)$", lambda maker: maker.number == 1),
    )
)
