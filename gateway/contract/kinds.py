"""Discovery: kinds with their entities and actions, operations, tools and documents for agents."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Struct

from gateway.contract.connectors import KIND_ID, ConnectorStatus
from gateway.contract.members import ID, Id, PageOf, member


class Effect(StrEnum):
    """The effect of running an operation twice; it decides whether the gateway repeats one whose response is lost."""

    #: it changes nothing and may be repeated at any time
    READ = "read"
    #: running it twice is the same as once; it is repeated if the response is lost
    IDEMPOTENT = "idempotent"
    #: it must not run twice; if the response is lost, the outcome is `unknown`
    WRITE = "write"


class PagingStyle(StrEnum):
    """How the next page of a list is requested."""

    #: a page number, increased by one for each page
    PAGE = "page"
    #: the number of records to skip
    OFFSET = "offset"
    #: an opaque value of the response goes into a param of the next request
    CURSOR = "cursor"
    #: the response holds the URL of the next page, from which one member of the query goes into a param
    LINK = "link"
    #: the id of the last record goes into a param of the next request
    LAST_ID = "last_id"
    #: the spec does not say how: a list that may have more records says so in `incomplete`
    UNKNOWN = "unknown"


PARAMS_SCHEMA = {"type": "object", "properties": {"ticket_id": {"type": "integer"}}, "required": ["ticket_id"]}
_EFFECT = "The effect of running it twice."


class SunsetView(Struct, frozen=True, kw_only=True):
    """A part of the application that it has deprecated."""

    sunset: Annotated[str | None, member("The first day without it; null if none is named.", format="date")] = None
    deprecated: Annotated[str | None, member("The day since which it is deprecated.", format="date")] = None
    replacement: Annotated[str | None, member("Its replacement.")] = None
    documentation_url: Annotated[str | None, member("The application's own page about it.")] = None


class DeprecatedPathView(SunsetView, frozen=True, kw_only=True):
    """Paths of the application, or operations, that it has deprecated."""

    path: Annotated[str | None, member("The beginning of the paths; null if it is about `operations`.")] = None
    operations: Annotated[list[str], member("The operations.", [])] = []


class CredentialView(Struct, frozen=True):
    """A member of `credentials`."""

    description: Annotated[str, member("What it is.", "made in the admin center")]
    required: Annotated[bool, member("Whether it is required.", True)]
    secret: Annotated[bool, member("Whether it is a secret.", True)]
    format: Annotated[
        str | None, member("Its format: `email`, or `private_key` and `key_file` for the whole text of a file.")
    ]


class VariableView(Struct, frozen=True, kw_only=True):
    """A variable that is not a secret."""

    description: Annotated[str, member("What it is.", "The account's subdomain.")]
    required: Annotated[bool, member("Whether it is required.", True)]
    type: Annotated[Literal["dns_label", "host", "origin", "text"], member("Its format.")]
    example: Annotated[str | None, member("An example.", "acme")]
    default: Annotated[str | None, member("The value when it is left out.")]
    enum: Annotated[list[str] | None, member("The only values that it may have.")] = None


class AuthMethodView(SunsetView, frozen=True, kw_only=True):
    """An authentication method."""

    id: Annotated[str, member("The method's name.", "api_token")]
    title: Annotated[str, member("The name for people.", "API token")]
    description: Annotated[str | None, member("When to use it.")] = None
    oauth: Annotated[bool, member("Whether a person's consent gives the credentials.", False)]
    grant_type: Annotated[str | None, member("The OAuth grant, if it needs no consent.")] = None
    fields: Annotated[dict[str, CredentialView], member("The members of `credentials`, by name.")]


class KindMembers(Struct, frozen=True, kw_only=True):
    """The members of every view of a kind."""

    kind: Annotated[str, member("The kind.", "support-desk")]
    application: Annotated[str, member("The vendor's name for the application.", "Zendesk")]
    connector_type: Annotated[str, member("The kind in its display form.", "Support-Desk")]
    definition_id: Annotated[Id, member("The kind's id.", KIND_ID)]
    title: Annotated[str, member("The name for people.", "Support desk")]
    description: Annotated[str, member("What the kind is for.", "Read and write tickets, comments and users.")]
    auth_methods: Annotated[list[AuthMethodView], member("How a connector can authenticate.")]
    environment: Annotated[dict[str, VariableView], member("The variables that are not secret, by name.")]
    oauth: Annotated[bool, member("Whether a person's consent can create a connector.", True)]
    deprecations: Annotated[list[DeprecatedPathView], member("Parts of the application that it has deprecated.", [])]
    docs_skill_id: Annotated[str, member("`id` of GET /api/v1/skills/docs.", "support-desk")]


class KindSummaryView(KindMembers, frozen=True, kw_only=True):
    """A kind in brief."""

    entities: Annotated[dict[str, list[str]], member("The actions, by entity.", {"tickets": ["list", "get"]})]


class KindPage(PageOf[KindSummaryView], frozen=True):
    """All kinds, on one page."""


class PagingView(Struct, frozen=True, kw_only=True):
    """How a list is paged."""

    style: Annotated[PagingStyle, member("How the next page is requested.", "page")]
    param: Annotated[str | None, member("The param for the next page; null if it is unknown.", "page")]
    size: Annotated[str | None, member("The param for the page size.", "per_page")]
    next: Annotated[
        str | None, member("The member of Meta that goes into `param`; null if it is unknown.", "next_page")
    ]
    has_more: Annotated[str | None, member("The member of Meta that is true while there is a next page.")]
    max_pages: Annotated[int | None, member("The maximum number of pages.", 100)]
    order: Annotated[
        Literal["stable", "unknown", "by_time"],
        member(
            "`unknown` if a change may move a record to a page that was read before; `by_time` if the records are"
            " sorted by a time, from which the list can be continued; `stable` if no record can be skipped."
        ),
    ]
    incomplete: Annotated[str | None, member("The member of Meta that says that the list is incomplete.")]


class AlternativeView(Struct, frozen=True):
    """The paging when a param is left out."""

    without: Annotated[str, member("The param that is left out.")]
    paging: Annotated[PagingView | None, member("The paging without the param.")]


class ActionView(Struct, frozen=True, kw_only=True):
    """An action of an entity."""

    description: Annotated[str, member("What it does.", "One ticket.")]
    effect: Annotated[Effect, member(_EFFECT, "read")]
    runs: Annotated[
        Literal["inline", "job", "wait"], member("Whether it is answered inline, as a job, or as a job after a wait.")
    ]
    params: Annotated[dict[str, Any], member("JSON Schema 2020-12 of its params.", PARAMS_SCHEMA)]
    meta: Annotated[list[str], member("The members of `connector_metadata`.", [])]
    paging: Annotated[PagingView | None, member("How it is paged.")]
    alternatives: Annotated[list[AlternativeView], member("The paging when a param is left out.", [])]
    example: Annotated[
        dict[str, Any],
        member("A valid body of execute.", {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}}),
    ]


class EntityView(Struct, frozen=True, omit_defaults=True):
    """An entity of a kind."""

    description: Annotated[str, member("What it is.", "Customer requests.")]
    fields: Annotated[
        dict[str, str | dict[str, Any]],
        member(
            "The members of its records: `string`, `integer?` (may be null), `array<object>`, or JSON Schema.",
            {"id": "integer"},
        ),
    ]
    actions: Annotated[dict[str, ActionView], member("The actions, by name.")]
    search_fields: Annotated[
        dict[str, str] | None, member("The fields for filters of `context_store_search`, with their types.")
    ] = None


class KindView(KindMembers, frozen=True, kw_only=True):
    """A kind with all its operations."""

    entities: Annotated[dict[str, EntityView], member("The entities, by name.")]


class MatchedConnectorView(Struct, frozen=True):
    """A connector that can run the operation."""

    id: Annotated[Id, member("The connector's id.", ID)]
    name: Annotated[str, member("The display name.", "Help desk")]
    workspace_name: Annotated[str, member("The connector's workspace.", "acme")]
    status: Annotated[ConnectorStatus, member("Whether the connector can be used.", "active")]


class OperationMatch(Struct, frozen=True, kw_only=True):
    """An operation that fits a task."""

    operation: Annotated[str, member("`kind.entity.action`.", "support-desk.tickets.get")]
    application: Annotated[str, member("The application's name.", "Zendesk")]
    kind: Annotated[str, member("The application's kind.", "support-desk")]
    entity: Annotated[str, member("The entity.", "tickets")]
    action: Annotated[str, member("The action.", "get")]
    effect: Annotated[Effect, member(_EFFECT, "read")]
    title: Annotated[str, member("A few words for people.", "Get ticket")]
    signature: Annotated[
        str, member("The params in one line; `*` marks required ones.", "tickets.get(ticket_id*) → ticket")
    ]
    description: Annotated[str, member("What it does.", "One ticket.")]
    score: Annotated[float | None, member("How well it fits; null without a query.", 0.92)] = None
    connectors: Annotated[list[MatchedConnectorView], member("At most 20 connectors that can run it.")] = []


class OperationMatches(Struct, frozen=True):
    """Operations; the best match first, without a query in a fixed order."""

    data: Annotated[list[OperationMatch], member("The operations that do the task.")]
    closest: Annotated[
        list[OperationMatch], member("If no operation does the task, the operations that come closest.", [])
    ]
    message: Annotated[str | None, member("If no operation does the task, a sentence that says what is missing.", None)]
    took_ms: Annotated[int, member("Duration of the search in milliseconds.", 3)]


_NAME = "The tool's name: at most 64 characters of `[a-zA-Z0-9_-]`."


class McpToolView(Struct, frozen=True, rename={"input_schema": "inputSchema"}, kw_only=True):
    """A tool in the format of the Model Context Protocol."""

    name: Annotated[str, member(_NAME, "support-desk__tickets__get")]
    title: Annotated[str, member("A few words for people.", "Get ticket")]
    description: Annotated[str, member("What it does.", "Get ticket (Zendesk). One ticket.")]
    input_schema: Annotated[dict[str, Any], member("JSON Schema of the params.", PARAMS_SCHEMA)]
    annotations: Annotated[
        dict[str, bool],
        member(
            "Hints by which a host decides whether to ask its user.",
            {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True},
        ),
    ]


class OpenAIFunctionView(Struct, frozen=True):
    """The function of an OpenAI tool."""

    name: Annotated[str, member(_NAME)]
    description: Annotated[str, member("What it does.")]
    parameters: Annotated[dict[str, Any], member("JSON Schema of the params.")]


class OpenAIToolView(Struct, frozen=True):
    """A tool in OpenAI's format."""

    type: Annotated[Literal["function"], member("Always `function`.")]
    function: Annotated[OpenAIFunctionView, member("The function.")]


class AnthropicToolView(Struct, frozen=True):
    """A tool in Anthropic's format."""

    name: Annotated[str, member(_NAME)]
    description: Annotated[str, member("What it does.")]
    input_schema: Annotated[dict[str, Any], member("JSON Schema of the params.")]


class ToolsView(Struct, frozen=True):
    """Operations as tools."""

    data: Annotated[
        list[dict[str, Any]],
        member(
            "The tools in the requested format.",
            items={"anyOf": [{"$ref": f"#/components/schemas/{name}Tool"} for name in ("Mcp", "OpenAI", "Anthropic")]},
        ),
    ]
    operations: Annotated[
        dict[str, str],
        member(
            "The operation of each tool: `kind.entity.action` by the tool's name.",
            {"support-desk__tickets__get": "support-desk.tickets.get"},
        ),
    ]


class DocsMetadataView(Struct, frozen=True):
    """The subject of a document."""

    id: Annotated[str, member("The document's id.", "support-desk")]
    title: Annotated[str, member("The title.", "Support desk")]
    kind: Annotated[str, member("The kind.", "support-desk")]


class DocsSectionView(Struct, frozen=True):
    """A section of a document."""

    id: Annotated[str, member("`section` of the call.", "tickets")]
    title: Annotated[str, member("The heading.", "tickets")]


class BlockView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A block of a document."""

    type: Annotated[Literal["heading", "paragraph", "list", "table", "code"], member("The type of the block.")]
    level: Annotated[int | None, member("The level of a heading.", 2)] = None
    text: Annotated[str | None, member("The text of a heading or a paragraph.", "tickets")] = None
    ordered: Annotated[bool | None, member("Whether a list is numbered.")] = None
    items: Annotated[list[str] | None, member("The items of a list.")] = None
    headers: Annotated[list[str] | None, member("The column names of a table.")] = None
    rows: Annotated[list[list[str]] | None, member("The cells of a table, by row.")] = None
    language: Annotated[str | None, member("The language of code.")] = None
    code: Annotated[str | None, member("The text of code.")] = None


class SkillDocsView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A kind's document for agents."""

    id: Annotated[str, member("The document's id.", "support-desk")]
    metadata: Annotated[DocsMetadataView, member("What the document is about.")]
    outline: Annotated[list[DocsSectionView], member("The sections.")]
    content: Annotated[list[BlockView], member("The document, or the requested section.")]
    section_id: Annotated[str | None, member("The requested section.")] = None
