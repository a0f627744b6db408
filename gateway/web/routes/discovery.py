"""Kinds, operations, tools and documents for agents."""

from gateway.access.identity.model import Scope
from gateway.contract.kinds import KindPage, KindView, OperationMatches, SkillDocsView, ToolsView
from gateway.web.api import discovery, operation_search
from gateway.web.route import Route

READ = Scope.READ

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/integrations/connector-types",
        discovery.list_connector_types,
        "List the kinds of connectors",
        "Discovery",
        response=KindPage,
        command="gateway types",
        python="print(await gateway.types())",
    ),
    Route(
        "GET",
        "/api/v1/integrations/connector-types/{kind}",
        discovery.get_connector_type,
        "Get a kind with its operations",
        "Discovery",
        response=KindView,
        command="gateway types support-desk",
        python='print(await gateway.type("support-desk"))',
    ),
    Route(
        "GET",
        "/api/v1/operations",
        operation_search.search_operations,
        "Find operations for a task in plain words",
        "Discovery",
        query=operation_search.OperationQuery,
        response=OperationMatches,
        scope=READ,
        command="gateway find close a ticket",
        python='print((await gateway.find_operations("close a ticket")).data)',
    ),
    Route(
        "GET",
        "/api/v1/tools",
        operation_search.list_tools,
        "List operations as tool definitions for agent frameworks",
        "Discovery",
        query=operation_search.ToolQuery,
        response=ToolsView,
        scope=READ,
        command="gateway tools --format openai --kind support-desk --effect read",
        python='print(await gateway.tools(kind="support-desk", effect="read"))',
    ),
    Route(
        "GET",
        "/api/v1/skills/docs",
        discovery.read_skill_docs,
        "Read a kind's document for agents",
        "Discovery",
        query=discovery.DocsQuery,
        response=SkillDocsView,
    ),
)
