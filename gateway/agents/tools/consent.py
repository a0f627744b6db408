"""Asks a person to connect an application: the client opens a page if it can, else the model gets a link."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result, input_required, structured, url_elicitation
from gateway.agents.tools import answers
from gateway.agents.tools.backend import ConnectorInfo, ConsentLink, JobsBackend
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.agents.mcp.request_state import RequestStates

#: the key of the question
_QUESTION = "connect"
#: seconds to wait for the consent of a person who agreed to give it
_TIMEOUT = 45


class PendingConsents:
    """Asks for consents; the link's id is in the sealed state that the client returns."""

    def __init__(self, jobs: JobsBackend, states: "RequestStates") -> None:
        self._jobs = jobs
        self._states = states

    async def ask(self, context: Context, error: GatewayError, kind: str, connector: ConnectorInfo | None) -> Result:
        """The question to the person; or the error, with a link if there can be one."""
        link = await self._link(context, kind, connector)
        if link is None:
            return answers.refused(error)
        if self._is_unanswered(context) and context.can("elicitation", "url"):
            return self._question(context, link, error.detail)
        advice = "Give the person this link. Call again when the person has connected the application."
        return answers.refused(error, connect_url=link.url, advice=advice)

    async def offered(
        self, context: Context, kind: str, connector: ConnectorInfo | None, connectors: Sequence[Mapping[str, Any]]
    ) -> Result:
        """A link that the caller asked for; the client opens it if it can."""
        if context.input_responses:
            return structured({"connectors": connectors, "connected": await self.is_granted(context)})
        link = await self._jobs.connect_link(context.caller, kind, connector)
        if context.can("elicitation", "url"):
            return self._question(context, link, f"Connect {kind}")
        return structured({"connectors": connectors, "connect_url": link.url})

    async def is_granted(self, context: Context) -> bool:
        """Whether the person agreed, and connects the application within 45 seconds."""
        state = self._states.opened(context.message, context.caller.principal)
        response = context.input_responses.get(_QUESTION)
        if state is None or not isinstance(response, Mapping) or response.get("action") != "accept":
            return False
        return await self._jobs.is_connected(context.caller, state["link"], _TIMEOUT)

    async def _link(self, context: Context, kind: str, connector: ConnectorInfo | None) -> ConsentLink | None:
        try:
            return await self._jobs.connect_link(context.caller, kind, connector)
        except GatewayError:
            return None

    def _is_unanswered(self, context: Context) -> bool:
        """Whether the person has not answered; a call asks a person only once."""
        return _QUESTION not in context.input_responses

    def _question(self, context: Context, link: ConsentLink, message: str) -> Result:
        state = self._states.sealed(context.message, context.caller.principal, {"link": link.id})
        return input_required({_QUESTION: url_elicitation(message, link.url, link.id)}, state)
