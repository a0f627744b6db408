"""Makes the names of entities and actions from paths, methods and tags; always the same for the same document. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import inflection

from gateway.kinds.importing.model import SourceOperation
from gateway.kinds.importing.verbs import VERBS, plain_verb
from gateway.kinds.importing.words import identifier, words
from gateway.kinds.lint.kind import ACTIONS
from gateway.kinds.suggestions import misspelt

#: first segments that name a version or the API, not the resource
_VERSION = re.compile(r"v?\d+([._-]\d+)*([a-z]+\d*)?|api|rest|latest", re.I)
_EXTENSION = re.compile(r"\.(json|xml|php|aspx?|do)$", re.I)
#: last segments that are searches
_SEARCHES = ("search", "query", "_search", "_query", "lookup")
#: verbs whose action is `delete`
_DELETING = ("delete", "remove", "destroy", "erase")
#: words that are their own singular, although the rules of English have another one
_SAME = frozenset({
    "analytics", "atlas", "aws", "canvas", "chaos", "cms", "cors", "css", "data", "dns", "ecs", "eks", "gas", "goods",
    "gprs", "gps", "https", "iaas", "ios", "kms", "kubernetes", "kudos", "lens", "media", "metadata", "news", "paas",
    "pos", "premises", "rds", "rss", "saas", "sales", "series", "sms", "sns", "species", "sqs", "tls", "windows",
})  # fmt: skip
#: words that the rules of the library get wrong
_ODD = {"caches": "cache", "leaves": "leaf", "criteria": "criterion", "premieres": "premiere", "axes": "axis"}
#: names that no entity may have → the names in place of them
_TAKEN = {"connector": "connector_resources", "": "resources"}


@lru_cache(4096)
def singular(name: str) -> str:
    """A name in snake case with its last word in the singular: aws_accounts becomes aws_account."""
    before, mark, word = name.rpartition("_")
    if word in _SAME or (word not in _ODD and re.search(r"(ss|us|is|a)$|^.{0,2}$", word)):
        return name
    return f"{before}{mark}{_ODD.get(word) or inflection.singularize(word)}"


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The methods of every path of a document."""

    #: path template without names of params → methods
    methods: dict[str, frozenset[str]]

    def has_items(self, path: str) -> bool:
        """Whether the document has a path with one more param, that of a single record."""
        return f"{_template(path)}/{{}}" in self.methods


def path_facts(operations: Collection[SourceOperation]) -> PathFacts:
    """The methods of every path, by its template."""
    found: dict[str, set[str]] = {}
    for operation in operations:
        found.setdefault(_template(operation.path), set()).add(operation.method)
    return PathFacts({path: frozenset(methods) for path, methods in found.items()})


def _template(path: str) -> str:
    return re.sub(r"{[^}]*}", "{}", path.rstrip("/"))


@dataclass(frozen=True, slots=True)
class PathNames:
    """The names in a path: its static segments, in groups that are separated by params."""

    groups: tuple[tuple[str, ...], ...]
    ends_with_param: bool
    #: the first segment, if it is a version: `v3`
    version: str = ""
    #: the verb after a colon or a dot of the last segment, or the text after `#`
    verb: str | None = None


def path_names(path: str) -> PathNames:
    """The names in a path; a version at its beginning and file extensions are left out."""
    path, _, variant = path.partition("#")
    parts = [part for part in path.split("?")[0].split("/") if part]
    version = ""
    while len(parts) > 1 and _VERSION.fullmatch(parts[0]):
        version = identifier(parts.pop(0))
    groups: list[list[str]] = [[]]
    verb, ends_with_param = identifier(variant) or None, False
    for position, part in enumerate(parts):
        part, after = _with_verb(_EXTENSION.sub("", part))
        if position == len(parts) - 1 and after:
            verb = identifier(after)
        ends_with_param = "{" in part
        if not ends_with_param:
            groups[-1].append(identifier(part) or "root")
        elif groups[-1]:
            groups.append([])
    return PathNames(tuple(tuple(group) for group in groups if group), ends_with_param, version, verb)


def _with_verb(part: str) -> tuple[str, str]:
    """A segment without its verb, and the verb: of `tasks:run` or `users.list`; the verb is empty without one."""
    name, _, verb = part.rpartition(":") if ":" in part else part.rpartition(".")
    return (name, verb) if name and "{" not in verb else (part, "")


def path_words(path: str) -> list[str]:
    """The words of the path's verb, else the first word of its last segment; none if the path ends with a param."""
    route = path_names(path)
    if route.verb:
        return words(route.verb)
    return words(route.groups[-1][-1])[:1] if route.groups and not route.ends_with_param else []


def own_verb(operation: SourceOperation) -> str | None:
    """The verb that the document has for an operation: in its id, else in its summary."""
    return next(iter([*spoken_verbs(operation.operation_id), *first_verb(operation.summary)]), None)


def spoken_verbs(text: str) -> list[str]:
    """The verb that a sentence begins with, or the verbs among the first and the last word of a name.

    Of a name with slashes, only the part after the last one counts.
    """
    if " " in text:
        return first_verb(text)
    name = words(text.rpartition("/")[2])
    first = [plain_verb(name[0])] if name else []
    return [verb for verb in (*first, *(word for word in name[1:][-1:] if word in VERBS)) if verb]


def first_verb(sentence: str) -> list[str]:
    """The verb that a sentence begins with, as a list of at most one."""
    return [verb for verb in map(plain_verb, words(sentence)[:1]) if verb]


def entity_name(name: str) -> str:
    """The name, or another one for it if no entity may have it."""
    return _TAKEN.get(name, name)


def entity_names(operation: SourceOperation, facts: PathFacts) -> Iterator[str]:
    """Names for the entity, the shortest first: the last noun with its parent, then with further ancestors, with the
    version, with a param."""
    groups = list(path_names(operation.path).groups)
    deleted = _deleted(operation)
    if deleted:
        groups = [*groups[:-1], (*groups[-1][:-1], deleted)]
    elif _is_verb_route(operation, facts):
        groups = [group for group in [*groups[:-1], groups[-1][:-1]] if group]
    if len(groups) == 1 and groups[0][0] == "search" and len(groups[0]) > 1:
        groups[0] = groups[0][1:]
    if not groups:
        tag = identifier(operation.tags[0]) if operation.tags and "{" in operation.path else "root"
        yield entity_name(tag)
        return
    nouns = [*map(singular, groups[-1][:-1]), groups[-1][-1]]
    ancestors = [singular(name) for group in groups[:-1] for name in group]
    parent = [singular(groups[-2][-1])] if len(groups) > 1 else []
    for above in (parent, *(ancestors[-count:] for count in range(2, len(ancestors) + 1))):
        name = identifier("_".join(_without_repeats([*above, *nouns])))
        yield entity_name(name)
    version = path_names(operation.path).version
    if version.startswith("v"):
        yield f"{name}_{version}"
    for param in re.findall(r"{([^}]*)}", operation.path)[::-1]:
        yield identifier(f"{name}_by_{param}")


def _without_repeats(names: Sequence[str]) -> list[str]:
    """The names without those that the next one begins with: "issue_comments" for "issue", "issue_comments"."""
    found = list(names[:1])
    for name in names[1:]:
        if name.startswith(f"{found[-1]}_"):
            found.pop()
        found.append(name)
    return found


def action_name(operation: SourceOperation, facts: PathFacts, *, is_list: bool, is_download: bool) -> str:
    """The name of the action: by method and shape of the response, or the application's own verb."""
    route = path_names(operation.path)
    if is_download:
        return "download"
    if _deleted(operation) is not None:
        return "delete"
    if _is_search(operation, route):
        return "api_search"
    if operation.method == "DELETE" and _is_verb_route(operation, facts):
        return _undoing_action(operation, route.groups[-1][-1])
    if route.verb or _is_verb_route(operation, facts):
        name = allowed(route.verb or route.groups[-1][-1])
        return f"{name}_records" if name == "list" and not is_list else name
    verb = own_verb(operation)
    match operation.method:
        case "GET":
            return "list" if is_list else "get"
        case "POST" if route.ends_with_param:
            return "create" if verb in ("create", "add", "insert") else "update"
        case "POST":
            return "update" if verb in ("update", "edit", "modify") else "create"
    name = "delete" if operation.method == "DELETE" else "update"
    is_of_all = not route.ends_with_param and facts.has_items(operation.path)
    return f"{name}_all" if is_of_all else name


def _undoing_action(operation: SourceOperation, segment: str) -> str:
    """The action of a DELETE whose path ends with a verb: `unpin` for `/pin`, else `delete_archive` for `/archive`."""
    verb = own_verb(operation)
    return verb if verb is not None and verb != segment and verb.endswith(segment) else f"delete_{segment}"


def _deleted(operation: SourceOperation) -> str | None:
    """What a path such as `/deleteUser` deletes: `user`; empty if the path ends with the verb, None without it."""
    route = path_names(operation.path)
    if route.ends_with_param or not route.groups or operation.method == "DELETE":
        return None
    first, _, noun = (route.verb or route.groups[-1][-1]).partition("_")
    is_alone = len(route.groups) == 1 and len(route.groups[0]) == 1 and not route.verb
    return noun if first in _DELETING and (noun or not is_alone) else None


def _is_search(operation: SourceOperation, route: PathNames) -> bool:
    if operation.method not in ("GET", "POST") or not route.groups:
        return False
    is_last = not route.ends_with_param and (route.verb or route.groups[-1][-1]) in _SEARCHES
    is_first = operation.method == "GET" and route.groups[0][0] == "search" and len(route.groups) == 1
    return is_last or is_first


def _is_verb_route(operation: SourceOperation, facts: PathFacts) -> bool:
    """Whether the last segment is a verb, not a noun."""
    route = path_names(operation.path)
    if route.verb:
        return False
    if route.ends_with_param or not route.groups or (len(route.groups) == 1 and len(route.groups[0]) == 1):
        return False
    last = route.groups[-1][-1]
    if _is_search(operation, route):
        return last in _SEARCHES
    is_verb = words(last)[:1] != [] and words(last)[0] in VERBS
    if last in _DELETING:
        return operation.method != "DELETE"
    return is_verb and operation.method != "GET" and not facts.has_items(operation.path)


def allowed(name: str) -> str:
    """A name that the linter allows for an action: it refuses synonyms and misspellings of `get`, `list` and others."""
    name = identifier(name)
    plain = {"fetch": "get", "read": "mark_read", "retrieve": "get", "search": "api_search", "find": "find_records"}
    if name in plain:
        return plain[name]
    if name not in ACTIONS and (meant := misspelt(name, ACTIONS)):
        return f"{name}_records" if meant != name else name
    return name
