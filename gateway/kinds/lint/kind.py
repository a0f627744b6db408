"""The linter of a kind: a list of errors, each with file, line and correction."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gateway.contract.kinds import PagingStyle
from gateway.errors import BY_CODE, InvalidParams
from gateway.foundation.hosts import host_matches
from gateway.kinds import params as checks
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.authentication import Assertion, AuthMethod
from gateway.kinds.catalog import Kind
from gateway.kinds.lint import operations as lint_operations
from gateway.kinds.lint import sync as lint_sync
from gateway.kinds.lint import webhooks as lint_webhooks
from gateway.kinds.lint.reading import read_leniently
from gateway.kinds.lint.schemas import PlacedError, of_schema, references, undescribed
from gateway.kinds.paging import HEADER_PATH, LINK_PATH
from gateway.kinds.requests import RequestSpec
from gateway.kinds.sources import LintError, composed, lint_error, repeated_members
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean, misspelt

#: the action ids of product document 1
ACTIONS = ("list", "get", "create", "update", "delete", "download", "api_search")
#: other words for these; any other verb is an action of its own, such as `snooze`
_OTHER_WORDS = {"fetch": "get", "read": "get", "retrieve": "get", "search": "api_search", "find": "api_search"}
#: how `fields` writes the type of a member; a `?` marks one that may be null
_FIELD_TYPE = re.compile(
    r"(string|integer|number|boolean|object|any|array(<(string|integer|number|boolean|object)>)?)\??"
)

#: the members of an authentication method that belong to one scheme
_OF_SCHEME = {"basic": ("username", "password"), "api_key": ("headers", "query")}
#: OAuth addresses that are needed before there is a token
_BEFORE_TOKENS = ("authorization_url", "token_url", "issuer")


def lint(folder: Path) -> list[LintError]:
    """The errors of the spec in a folder, sorted by file and line."""
    return linted_kind(folder)[1]


def linted_kind(folder: Path) -> tuple[Kind | None, list[LintError]]:
    """The kind in a folder, without members that cannot be read, and all errors of its spec; None if none can be."""
    composed.cache_clear()
    reading = read_leniently(folder)
    errors = list(reading.errors)
    kind = None if reading.spec is None else Kind(reading.spec)
    if kind is not None:
        errors += [
            lint_error(folder, place, message)
            for place, message in lint_kind(kind)
            if reading.is_certain(place, message)
        ]
    readable = set(folder.glob("*.yaml")) - {error.path for error in errors if error.is_unreadable}
    errors += [repeated for path in sorted(readable) for repeated in repeated_members(path)]
    in_order = sorted(
        set(errors), key=lambda each: (each.path.name != "connector.yaml", each.path, each.line, each.message)
    )
    composed.cache_clear()
    return kind, in_order


def lint_kind(kind: Kind) -> Iterator[PlacedError]:
    """The errors of a kind that could be loaded: the place in its spec, and what to do."""
    return (error for check in CHECKS for error in check(kind))


def _descriptions(kind: Kind) -> Iterator[PlacedError]:
    """Every kind, entity and action has a description, because agents choose by it."""
    described: dict[tuple[str, ...], str] = {("description",): kind.spec.description}
    for entity_id, entity in kind.spec.entities.items():
        described["entities", entity_id, "description"] = entity.description
        for action_id, action in entity.actions.items():
            described["entities", entity_id, "actions", action_id, "description"] = action.description
    for place, description in described.items():
        if not re.search(r"\w", description):
            yield place, "has no words; write one sentence on what it is and what it returns"


def _phrases(kind: Kind) -> Iterator[PlacedError]:
    """No entry of `synonyms` or `phrases` is repeated for one owner: a repetition has no effect."""
    phrases: dict[tuple[str, ...], tuple[str, ...]] = {("synonyms",): kind.spec.synonyms}
    for entity_id, entity in kind.spec.entities.items():
        phrases["entities", entity_id, "synonyms"] = entity.synonyms
        for action_id, action in entity.actions.items():
            phrases["entities", entity_id, "actions", action_id, "phrases"] = action.phrases
    for place, listed in phrases.items():
        seen: set[str] = set()
        for phrase in listed:
            if phrase.lower() in seen:
                yield place, f"{phrase!r} appears twice; remove one"
            seen.add(phrase.lower())


def _entities(kind: Kind) -> Iterator[PlacedError]:
    if not kind.spec.entities:
        yield (), "the kind has no entities; add a file beside connector.yaml for each"
    for entity_id, entity in kind.spec.entities.items():
        place = ("entities", entity_id)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", entity_id):
            yield place, f"the file's name is the entity's id: write {entity_id!r} in lower snake case"
        for action_id in entity.actions:
            if action_id == SEARCH_ACTION:
                yield (*place, "actions", action_id), "is offered for every entity with `search`; remove it"
            elif action_id not in ACTIONS and (meant := _OTHER_WORDS.get(action_id) or misspelt(action_id, ACTIONS)):
                yield (*place, "actions", action_id), f"is not an action; did you mean {meant}?"
        if entity.search and entity.search.primary_key not in entity.search.fields:
            hint = did_you_mean(entity.search.primary_key, entity.search.fields)
            yield (
                (*place, "search", "primary_key"),
                f"{entity.search.primary_key} is not among the search fields; {hint}",
            )
        for name, type_ in entity.fields.items():
            if isinstance(type_, str) and not _FIELD_TYPE.fullmatch(type_):
                yield (
                    (*place, "fields", name),
                    f"{type_!r} is not a type; write for example string, integer? or array<object>",
                )


def _health_check(kind: Kind) -> Iterator[PlacedError]:
    if kind.spec.health_check is None:
        if kind.spec.health_check_params:
            yield ("health_check_params",), "has no effect without `health_check`"
        return
    entity_id, _, action_id = kind.spec.health_check.partition(".")
    operation = kind.operations.get((entity_id, action_id))
    if operation is None:
        names = [".".join(each) for each in kind.operations]
        yield ("health_check",), f"there is no {kind.spec.health_check}; {did_you_mean(kind.spec.health_check, names)}"
    elif operation.action.effect != "read":
        yield ("health_check",), f"{operation} must be a read"
    else:
        missing = [name for name in operation.action.required if name not in kind.spec.health_check_params]
        if missing:
            yield ("health_check",), f"{operation} requires {', '.join(missing)}; add `health_check_params`"
        elif kind.spec.health_check_params:
            try:
                checks.validated(operation, kind.spec.health_check_params)
            except InvalidParams as refused:
                for fault in refused.faults:
                    yield ("health_check_params",), f"would be refused: {fault.message}"


def _authentication(kind: Kind) -> Iterator[PlacedError]:
    spec = kind.spec
    for name, method in spec.authentication.items():
        for field in sorted(_credentials_used(method) - set(method.credentials)):
            hint = did_you_mean(field, method.credentials)
            yield ("authentication", name), f"uses {field}, which is not among its credentials; {hint}"
        for member in ("client_id", "client_secret"):
            if (field := getattr(method, member)) != member and field not in method.credentials:
                hint = did_you_mean(field, method.credentials)
                yield ("authentication", name, member), f"{field} is not among the credentials; {hint}"
        if not method.secrets and method.scheme != "none":
            yield (
                ("authentication", name, "credentials"),
                "no field is secret; mark each secret field with `secret: true`",
            )
        if method.credentials and method.scheme == "none":
            yield ("authentication", name, "credentials"), "the scheme none sends no credentials; drop them"
    by_oauth = {name: method for name, method in spec.authentication.items() if method.oauth}
    if spec.oauth and not by_oauth:
        yield ("oauth",), "no authentication method has `oauth: true`, so no credentials could hold the tokens"
    for name, method in by_oauth.items():
        if spec.oauth is None:
            yield ("authentication", name, "oauth"), "there are no OAuth endpoints; add `oauth`"
        app = (method.client_id, method.client_secret) if method.grant_type == "client_credentials" else ()
        for field in app:
            if field not in method.required:
                yield ("authentication", name, "credentials"), f"the grant needs {field} as a required credential"
    by_person = next((method for method in by_oauth.values() if method.grant_type is None), None)
    if spec.oauth and by_person:
        names = {*by_person.credentials, *spec.environment, "expires_in"}
        for name in spec.oauth.outputs:
            if name not in names:
                yield ("oauth", "outputs", name), f"is neither a credential nor a variable; {did_you_mean(name, names)}"


#: the claims that the gateway makes, or that members of `assertion` set, and the members of its header
_CLAIMS = {"aud": "audience", "exp": "lifetime", "iat": "", "jti": "has_id", "scope": "scopes"}
_HEADER = {"alg": "algorithm", "typ": ""}


def _assertions(kind: Kind) -> Iterator[PlacedError]:
    """What `jwt_bearer` signs and with what: only by that grant, with a secret credential that is never in a claim."""
    for name, method in kind.spec.authentication.items():
        place, assertion = ("authentication", name, "assertion"), method.assertion
        if assertion is None:
            if method.grant_type == "jwt_bearer":
                yield place, "is missing: the grant jwt_bearer sends a signed JWT"
            continue
        if method.grant_type != "jwt_bearer" or not method.oauth:
            yield place, "has no effect without `oauth: true` and `grant_type: jwt_bearer`"
        if assertion.key not in method.required or assertion.key not in method.secrets:
            hint = did_you_mean(assertion.key, method.credentials)
            yield (*place, "key"), f"{assertion.key} is not among the required and secret credentials; {hint}"
        reserved = [("claims", each, _CLAIMS) for each in assertion.claims]
        reserved += [("header", each, _HEADER) for each in assertion.header]
        for member, each, names in reserved:
            if each in names:
                instead = f"; it comes from `{names[each]}`" if names[each] else ""
                yield (*place, member, each), f"is set by the gateway{instead}"
        yield from _assertion_names(kind, method, assertion, place)


def _assertion_names(
    kind: Kind, method: AuthMethod, assertion: Assertion, place: tuple[str, ...]
) -> Iterator[PlacedError]:
    """The names in the texts of an assertion are known, and not secret."""
    environment = kind.spec.environment
    texts = {("claims", each): text for each, text in assertion.claims.items()}
    texts |= {("header", each): text for each, text in assertion.header.items()}
    for where, text in texts.items():
        for name in assertion.names(text):
            is_of_file = assertion.key_member is not None and name != assertion.key_member
            if name in (*method.secrets, assertion.key_member):
                yield (*place, *where), f"{name} is a secret: everybody who sees the JWT can read it"
            elif name not in method.credentials and name not in environment and not is_of_file:
                hint = did_you_mean(name, [*method.credentials, *environment])
                yield (*place, *where), f"needs {{{name}}}, which is neither a credential nor a variable; {hint}"
    outputs = kind.spec.oauth.outputs if kind.spec.oauth else {}
    known = [name for name, each in environment.items() if (each.required or each.default) and name not in outputs]
    for name in assertion.names(assertion.audience):
        if name not in known:
            hint = did_you_mean(name, known)
            yield (*place, "audience"), f"needs {{{name}}}, which is no variable that every connector has; {hint}"


def _credentials_used(method: AuthMethod) -> set[str]:
    issued = {"access_token"} if method.grant_type else set()
    if method.scheme == "bearer":
        return ({method.token} if method.token else set()) - issued
    return {name for text in _templates(method) for name in re.findall(r"{(\w+)}", text)} - issued


def _templates(method: AuthMethod) -> list[str]:
    """The texts of a method in which credentials are filled in."""
    if method.scheme == "basic":
        return [method.username or "", method.password or ""]
    return [*method.headers.values(), *method.query.values()]


def _schemes(kind: Kind) -> Iterator[PlacedError]:
    """Each scheme has the members that it needs and none of another."""
    for name, method in kind.spec.authentication.items():
        place = ("authentication", name)
        if method.scheme == "bearer" and not method.token:
            yield (*place, "token"), "is missing; name the credential that is sent, such as `token: access_token`"
        sends_texts = method.scheme in ("basic", "api_key")
        if sends_texts and not any(re.search(r"{\w+}", text) for text in _templates(method)):
            needed = "`username` and `password`" if method.scheme == "basic" else "`headers` or `query`"
            yield (*place, "scheme"), f"{method.scheme} sends no credential: write {needed} with {{field}} in it"
        for member in _OF_SCHEME.keys() - {method.scheme}:
            for given in _OF_SCHEME[member]:
                if getattr(method, given):
                    yield (*place, given), f"belongs to the scheme {member}, not to {method.scheme}"
        for header in method.headers:
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", header):
                yield (*place, "headers", header), "is not the name of a header (RFC 9110 §5.1)"


def _addresses(kind: Kind) -> Iterator[PlacedError]:
    spec, oauth = kind.spec, kind.spec.oauth
    addresses: dict[tuple[str, ...], str | None] = {("server",): spec.server}
    addresses |= {("server_with", name): server for name, server in spec.server_with.items()}
    if oauth:
        addresses |= {
            ("oauth", name): getattr(oauth, name)
            for name in ("authorization_url", "token_url", "revocation_url", "registration_url", "issuer")
        }
    for operation in kind.operations.values():
        addresses["entities", operation.entity_id, "actions", operation.action_id, "server"] = operation.action.server
    for entity_id, entity in spec.entities.items():
        for member, read in (entity.search.reads if entity.search else {}).items():
            addresses["entities", entity_id, "search", "sync", *filter(None, [member]), "server"] = read.server
    headers: dict[tuple[str, ...], str] = {("headers", name): text for name, text in spec.headers.items()}
    for operation in kind.operations.values():
        own = ("entities", operation.entity_id, "actions", operation.action_id, "headers")
        headers |= {(*own, name): text for name, text in operation.action.headers.items()}
    members = oauth.client_params if oauth else {}
    headers |= {("oauth", "client_params", name): text for name, text in members.items()}
    for place, text in headers.items():
        for name in re.findall(r"{(\w+)}", text):
            if name not in spec.environment:
                hint = did_you_mean(name, spec.environment)
                yield place, f"needs {{{name}}}, which is not in the environment; {hint}"
    for name in spec.server_with:
        if name not in spec.environment:
            yield ("server_with", name), f"is not in the environment; {did_you_mean(name, spec.environment)}"
        elif spec.environment[name].required:
            yield ("server_with", name), "needs an optional variable; give the variable `required: false`"
    for place, address in addresses.items():
        if not address:
            continue
        for name in re.findall(r"{(\w+)}", address):
            if name not in spec.environment:
                hint = did_you_mean(name, spec.environment)
                yield place, f"needs {{{name}}}, which is not in the environment; {hint}"
            elif oauth and place[-1] in _BEFORE_TOKENS and name in oauth.outputs:
                yield place, f"needs {{{name}}}, which is known only after the first token"
        if not re.match(r"https://|{", address):
            yield place, "must be an https URL, or begin with a variable that is one"
        host = re.match(r"https://((?!{\w+}(?:/|$))[^/]+)", address)
        gets_credentials = place[-1] not in ("authorization_url", "issuer")
        for named in _hosts_of(spec, host[1]) if host and gets_credentials else ():
            if not host_matches(named, spec.hosts):
                yield place, f"{named} is not among the hosts that may receive credentials; add it to `hosts`"


def _hosts_of(spec: ConnectorSpec, host: str) -> list[str]:
    """The hosts that a host with variables may be: one for each value of those with `enum`, any name for others."""
    hosts = [host]
    for name in dict.fromkeys(re.findall(r"{(\w+)}", host)):
        variable = spec.environment.get(name)
        values = ("x",) if variable is None or variable.enum is None else variable.enum
        hosts = [each.replace(f"{{{name}}}", value) for each in hosts for value in values]
    return hosts


def _variables(kind: Kind) -> Iterator[PlacedError]:
    for name, variable in kind.spec.environment.items():
        for member, value in (("default", variable.default), ("example", variable.example)):
            if variable.enum is not None and value is not None and value not in variable.enum:
                allowed = ", ".join(variable.enum)
                yield ("environment", name, member), f"{value} is not among the values of `enum`: {allowed}"


def _sunsets(kind: Kind) -> Iterator[PlacedError]:
    spec = kind.spec
    for name, method in spec.authentication.items():
        if method.sunset and (method.replacement not in spec.authentication or method.replacement == name):
            hint = did_you_mean(method.replacement or "", [other for other in spec.authentication if other != name])
            yield ("authentication", name, "replacement"), f"is no other authentication method; {hint}"
    for number, ending in enumerate(spec.deprecations):
        if bool(ending.path) == bool(ending.operations):
            yield ("deprecations", str(number)), "is about either a `path` or `operations`"
        if ending.switched and not (ending.replacement or "").startswith("/"):
            yield ("deprecations", str(number), "replacement"), "is not a path, so requests cannot be `switched` to it"
        paths = [operation.action.request.split(" ", 1)[1] for operation in kind.operations.values()]
        if ending.path and not any(path.startswith(ending.path) for path in paths):
            yield ("deprecations", str(number), "path"), f"no request's path begins with {ending.path}"
        names = [str(operation) for operation in kind.operations.values()]
        for name in ending.operations:
            if name not in names:
                yield (
                    ("deprecations", str(number), "operations"),
                    f"{name} is no operation; {did_you_mean(name, names)}",
                )


def _failures(kind: Kind) -> Iterator[PlacedError]:
    for code in kind.spec.failure.codes:
        if code not in BY_CODE:
            yield ("failure", "codes", code), f"is not an error code of the gateway; {did_you_mean(code, BY_CODE)}"


def _paging(kind: Kind) -> Iterator[PlacedError]:
    used = {name for operation in kind.operations.values() for name in lint_operations.pagings(operation.action)}
    searches = [entity.search for entity in kind.spec.entities.values() if entity.search]
    used |= {read.paging for search in searches for read in search.reads.values() if read.paging}
    long = [each.action.long_running for each in kind.operations.values() if each.action.long_running]
    used |= {request.paging for how in long for request in how.results.requests if request.paging}
    for name, paging in kind.spec.paging.items():
        place = ("paging", name)
        if name not in used:
            yield place, "no action uses this paging style; remove it"
        members = {member: getattr(paging, member) for member in _META_MEMBERS}
        if "next" in paging.model_fields_set:
            members["next"] = paging.next[0] if paging.next else "$"
        for what, member in members.items():
            if member is not None and member not in paging.meta:
                yield (*place, what), f"{member} is not a member of `meta`; {did_you_mean(member, paging.meta)}"
        for param, member in paging.carried.items():
            if member not in paging.meta:
                hint = did_you_mean(member, paging.meta)
                yield (*place, "carried", param), f"{member} is not a member of `meta`; {hint}"
        for member, path in paging.meta.items():
            if not path or (path[0][:1] == "$" and (path[0] not in (HEADER_PATH, LINK_PATH) or len(path) < 2)):
                yield (
                    (*place, "meta", member),
                    "is not a path in a response; write a.b, @.a, $header.name or $link.next",
                )
        for member, styles in _OF_PAGING_STYLE.items():
            if member in paging.model_fields_set and paging.style not in styles:
                yield (
                    (*place, member),
                    f"has no effect in the style {paging.style}; it belongs to {' and '.join(styles)}",
                )
            elif (
                member in _OF_COUNTED_PAGES
                and member in paging.model_fields_set
                and paging.next
                and not paging.is_counted
                and paging.style is not PagingStyle.UNKNOWN
            ):
                yield (*place, member), "has no effect beside `next`: a list ends where the response names no next page"
        if (
            paging.total
            and not paging.is_counted
            and paging.style is not PagingStyle.UNKNOWN
            and not paging.max_records
        ):
            yield (
                (*place, "total"),
                "has no effect beside `next`, unless `max_records` says how many are listed at most",
            )
        if paging.short_page and paging.size is None:
            yield (*place, "short_page"), "needs `size`: the param that requests the number of records on a page"
        if paging.beyond and paging.max_pages is None and paging.max_records is None:
            yield (*place, "beyond"), "has no effect without `max_pages` or `max_records`"


def _pagings_named(kind: Kind) -> Iterator[PlacedError]:
    """Every paging style that is named in an entity's file is defined."""
    named: dict[tuple[str, ...], str | None] = {}
    for operation in kind.operations.values():
        place: tuple[str, ...] = ("entities", operation.entity_id, "actions", operation.action_id)
        named[(*place, "paging")] = operation.action.paging
        for number, alternative in enumerate(operation.action.alternatives):
            named[(*place, "alternatives", str(number), "paging")] = alternative.paging
    for entity_id, entity in kind.spec.entities.items():
        for member, read in (entity.search.reads if entity.search else {}).items():
            named["entities", entity_id, "search", "sync", *filter(None, [member]), "paging"] = read.paging
    for member_place, name in named.items():
        if name is not None and name not in kind.spec.paging:
            yield member_place, f"connector.yaml defines no paging {name!r}; {did_you_mean(name, kind.spec.paging)}"


def _orders(kind: Kind) -> Iterator[PlacedError]:
    """Every list that has pages declares its order, itself or by its paging style."""
    lists: dict[tuple[str, ...], RequestSpec] = {}
    for operation in kind.operations.values():
        lists["entities", operation.entity_id, "actions", operation.action_id] = operation.action
    for entity_id, entity in kind.spec.entities.items():
        for member, read in (entity.search.reads if entity.search else {}).items():
            lists["entities", entity_id, "search", "sync", *filter(None, [member])] = read
    for place, spec in lists.items():
        paging = kind.spec.paging.get(spec.paging or "")
        if paging is not None and spec.order is None and paging.order is None:
            yield (
                (*place, "paging"),
                f"declares no `order`; write `stable`, `unknown` or {{by_time: …}} here or in {spec.paging}",
            )
        if spec.paging is None and spec.order is not None:
            yield (*place, "order"), "has no effect on a list without pages; drop it"


def _property_names(kind: Kind) -> Iterator[PlacedError]:
    for name, application_name in kind.spec.property_names.items():
        if name.endswith("*") is not application_name.endswith("*"):
            yield ("property_names", name), f"{name} and {application_name} must both end with * or neither"


def _definitions(kind: Kind) -> Iterator[PlacedError]:
    spec = kind.spec
    schemas = [*spec.definitions.values()]
    for operation in kind.operations.values():
        schemas += [*operation.action.params.values(), operation.action.constraints]
    used = {reference for schema in schemas for reference in references(schema)}
    for name, schema in spec.definitions.items():
        yield from of_schema(spec, ("definitions", name), schema)
        yield from undescribed(spec, ("definitions", name), schema, is_param=False)
        if f"#/$defs/{name}" not in used:
            yield ("definitions", name), "nothing refers to it; remove it"


def _operations(kind: Kind) -> Iterator[PlacedError]:
    for cached in kind.operations.values():
        operation = replace(cached)  # its validator is freed after it, because a kind may have thousands
        for place, message in lint_operations.of_operation(kind, operation):
            yield ("entities", operation.entity_id, "actions", operation.action_id, *place), message


#: the members of `paging` that only some styles have
_OF_PAGING_STYLE = {
    "first": (PagingStyle.PAGE, PagingStyle.OFFSET),
    "total_pages": (PagingStyle.PAGE,),
    "stated_size": (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.LAST_ID),
    "short_page": (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.LAST_ID),
    "scrolls": (PagingStyle.CURSOR,),
    "id_field": (PagingStyle.LAST_ID,),
    "last_fields": (PagingStyle.LAST_ID,),
    "url_param": (PagingStyle.LINK, PagingStyle.PAGE),
    "max_pages": (PagingStyle.PAGE, PagingStyle.LINK),
    "max_records": (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.CURSOR, PagingStyle.UNKNOWN),
}
#: the members of `paging` that name a Meta member
_META_MEMBERS = ("has_more", "end", "total", "total_pages", "stated_size")
#: the proofs of an end that only counted pages need
_OF_COUNTED_PAGES = ("total_pages", "stated_size", "short_page")
#: every check of a kind that could be loaded
CHECKS: tuple[Callable[[Kind], Iterator[PlacedError]], ...] = (
    _descriptions,
    _phrases,
    _entities,
    _health_check,
    _authentication,
    _assertions,
    _schemes,
    _addresses,
    _variables,
    _sunsets,
    _failures,
    _paging,
    _pagings_named,
    _orders,
    _property_names,
    _definitions,
    _operations,
    lint_sync.of_kind,
    lint_webhooks.of_kind,
)
