"""Creates MCP servers with the gateway's tools."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from gateway.agents.mcp.features import StaticTools, Tools
from gateway.agents.mcp.server import Server
from gateway.agents.tools import descriptions
from gateway.agents.tools.backend import Backend, JobsBackend
from gateway.agents.tools.calls import Calls
from gateway.agents.tools.confirmation import RetryConfirmation
from gateway.agents.tools.consent import PendingConsents
from gateway.agents.tools.events import EventsBackend, FeedEvents
from gateway.agents.tools.general_tools import GeneralTools
from gateway.agents.tools.operation_tools import OperationTools
from gateway.agents.tools.resources import ResultResources
from gateway.agents.tools.skills import KindSkills
from gateway.agents.tools.subscriptions import TaskSubscriptions
from gateway.agents.tools.tasks import JobTasks

if TYPE_CHECKING:
    from gateway.agents.mcp.request_state import RequestStates

_NAME, _TITLE = "agent-connector-gateway", "Agent connector gateway"


class Servers:
    """The server with the general tools, and servers with a tool for each operation."""

    def __init__(
        self,
        backend: Backend,
        jobs: JobsBackend | None = None,
        states: "RequestStates | None" = None,
        events: EventsBackend | None = None,
    ) -> None:
        self._backend = backend
        self._jobs = jobs
        self._events = None if events is None else FeedEvents(events)
        self._calls = Calls(backend, jobs)
        consent = PendingConsents(jobs, states) if jobs is not None and states is not None else None
        confirmation = None if states is None else RetryConfirmation(states)
        self._tools = GeneralTools(backend, self._calls, jobs, consent, confirmation)
        self.general = self._server(StaticTools(self._tools.tools()))

    def of_operations(self, patterns: tuple[str, ...]) -> Server:
        """A server with a tool for each operation whose name matches one of the patterns, such as `team-chat.*`."""
        return self._server(OperationTools(self._backend, self._tools, patterns))

    def _server(self, tools: Tools) -> Server:
        has_tasks, skills = self._jobs is not None, KindSkills(self._backend)
        return Server(
            _NAME,
            version(_NAME),
            title=_TITLE,
            instructions=descriptions.INSTRUCTIONS,
            tools=tools,
            resources=ResultResources(self._backend, skills),
            skills=skills,
            tasks=JobTasks(self._calls) if has_tasks else None,
            subscriptions=TaskSubscriptions(self._calls) if has_tasks else None,
            events=self._events,
        )
