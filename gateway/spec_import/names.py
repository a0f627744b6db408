"""Names of entities and actions from paths, methods and tags; the same document gives the same names. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gateway.kinds.lint.kind import ACTIONS
from gateway.kinds.suggestions import misspelt, singular
from gateway.spec_import.model import SourceOperation
from gateway.spec_import.verbs import VERBS, plain_verb
from gateway.spec_import.words import identifier, words

#: first segments that say which version it is, and nothing of the resource
_VERSION = re.compile(r"v?\d+([._-]\d+)*([a-z]+\d*)?|api|rest|latest", re.I)
_EXTENSION = re.compile(r"\.(json|xml|php|aspx?|do)$", re.I)
#: segments that are verbs and often nouns: an action only where nothing is read there
_SEARCHES = ("search", "query", "_search", "_query", "lookup")
#: names that are taken: of a file of each kind, and of an action of the gateway's
_TAKEN = {"connector": "connector_resources", "": "resources"}


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The other operations of a document at and below a path."""

    #: path template without names of params → methods
    methods: dict[str, frozenset[str]]

    def has_items(self, path: str) -> bool:
        """Whether there are paths of single records below."""
        return f"{_template(path)}/{{}}" in self.methods

    def is_readable(self, path: str) -> bool:
        return "GET" in self.methods.get(_template(path), ())


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
    """A path as names: static segments in groups, with params between them."""

    groups: tuple[tuple[str, ...], ...]
    ends_with_param: bool
    #: the beginning of the path that does not name the resource: `v3`
    version: str = ""
    #: the verb behind a colon or a dot of the last segment, or the variant behind a fragment sign
    verb: str | None = None


def path_names(path: str) -> PathNames:
    """The segments of a path: versions at its beginning and file extensions do not count."""
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
    """A segment and its last verb: `tasks:run`, `users.list`."""
    name, _, verb = part.rpartition(":") if ":" in part else part.rpartition(".")
    return (name, verb) if name and "{" not in verb else (part, "")


def path_words(path: str) -> list[str]:
    """The words of the last static segment, where the path ends with one."""
    route = path_names(path)
    if route.verb:
        return words(route.verb)
    return words(route.groups[-1][-1])[:1] if route.groups and not route.ends_with_param else []


def own_verb(operation: SourceOperation) -> str | None:
    """The verb that the document itself has for an operation: of its id, else of its summary."""
    return next(iter([*spoken_verbs(operation.operation_id), *first_verb(operation.summary)]), None)


def spoken_verbs(text: str) -> list[str]:
    """The verb that a sentence begins with, or those among the first and the last word of a name behind its slash."""
    if " " in text:
        return first_verb(text)
    said = words(text.rpartition("/")[2])
    first = [plain_verb(said[0])] if said else []
    return [verb for verb in (*first, *(word for word in said[1:][-1:] if word in VERBS)) if verb]


def first_verb(sentence: str) -> list[str]:
    """The verb that a sentence begins with, if it does."""
    return [verb for verb in map(plain_verb, words(sentence)[:1]) if verb]


def entity_names(operation: SourceOperation, facts: PathFacts) -> Iterator[str]:
    """Names for the entity, the shortest first: the last noun below its parent, with further ancestors, by a param."""
    groups = list(path_names(operation.path).groups)
    if _is_verb_route(operation, facts):
        groups = [group for group in [*groups[:-1], groups[-1][:-1]] if group]
    if len(groups) == 1 and groups[0][0] == "search" and len(groups[0]) > 1:
        groups[0] = groups[0][1:]
    if not groups:
        tag = identifier(operation.tags[0]) if operation.tags and "{" in operation.path else "root"
        yield _TAKEN.get(tag, tag)
        return
    nouns = [*map(singular, groups[-1][:-1]), groups[-1][-1]]
    ancestors = [singular(name) for group in groups[:-1] for name in group]
    parent = [singular(groups[-2][-1])] if len(groups) > 1 else []
    for above in (parent, *(ancestors[-count:] for count in range(2, len(ancestors) + 1))):
        name = identifier("_".join(_without_repeats([*above, *nouns])))
        yield _TAKEN.get(name, name)
    version = path_names(operation.path).version
    if version.startswith("v"):
        yield f"{name}_{version}"
    for param in re.findall(r"{([^}]*)}", operation.path)[::-1]:
        yield identifier(f"{name}_by_{param}")


def _without_repeats(names: Sequence[str]) -> list[str]:
    """The names without those that the next begins with: "issue", "issue_comments" says issue twice."""
    found = list(names[:1])
    for name in names[1:]:
        if name.startswith(f"{found[-1]}_"):
            found.pop()
        found.append(name)
    return found


def action_name(operation: SourceOperation, facts: PathFacts, *, is_list: bool, is_download: bool) -> str:
    """The action by method and shape, or the application's own verb."""
    route = path_names(operation.path)
    if is_download:
        return "download"
    if _is_search(operation, route):
        return "api_search"
    if operation.method == "DELETE" and _is_verb_route(operation, facts):
        return _undone(operation, route.groups[-1][-1])
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


def _undone(operation: SourceOperation, segment: str) -> str:
    """The action of a DELETE at a path that is a verb: `unpin` at `/pin`, else `delete_archive` at `/archive`."""
    verb = own_verb(operation)
    return verb if verb is not None and verb != segment and verb.endswith(segment) else f"delete_{segment}"


def _is_search(operation: SourceOperation, route: PathNames) -> bool:
    if operation.method not in ("GET", "POST") or not route.groups:
        return False
    is_last = not route.ends_with_param and (route.verb or route.groups[-1][-1]) in _SEARCHES
    is_first = operation.method == "GET" and route.groups[0][0] == "search" and len(route.groups) == 1
    return is_last or is_first


def _is_verb_route(operation: SourceOperation, facts: PathFacts) -> bool:
    """Whether the last segment is what is done, not what it is done to."""
    route = path_names(operation.path)
    if route.verb:
        return False
    if route.ends_with_param or not route.groups or (len(route.groups) == 1 and len(route.groups[0]) == 1):
        return False
    last = route.groups[-1][-1]
    if _is_search(operation, route):
        return last in _SEARCHES
    is_verb = words(last)[:1] != [] and words(last)[0] in VERBS
    return is_verb and operation.method != "GET" and not facts.has_items(operation.path)


def allowed(name: str) -> str:
    """A name that an action may have: words that mean `get` or `api_search`, and misspellings, become others."""
    name = identifier(name)
    plain = {"fetch": "get", "read": "mark_read", "retrieve": "get", "search": "api_search", "find": "find_records"}
    if name in plain:
        return plain[name]
    if name not in ACTIONS and (meant := misspelt(name, ACTIONS)):
        return f"{name}_records" if meant != name else name
    return name
