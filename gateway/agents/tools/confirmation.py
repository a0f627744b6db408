"""Asks a person whether to send a write again that may have happened, if the client supports questions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result, elicitation, input_required
from gateway.agents.tools import answers
from gateway.errors import OutcomeUnknown
from gateway.jobs.model import JobSummary

if TYPE_CHECKING:
    from gateway.agents.mcp.request_state import RequestStates

#: the key of the question, and the name of its form's member
_QUESTION = "confirm"
_ADVICE = (
    "Look the record up. If the write did not happen, or may happen twice, call job again with do: retry and "
    "confirm: true."
)


class RetryConfirmation:
    """Asks the question; the job's id is in the sealed state that the client returns."""

    def __init__(self, states: "RequestStates") -> None:
        self._states = states

    def ask(self, context: Context, job: JobSummary) -> Result:
        """The question to the person; or an error if the client cannot ask, or if the person has refused."""
        if context.input_responses or not context.can("elicitation", "form"):
            extra = {"known": (job.error or {}).get("known")}
            refusal = OutcomeUnknown(
                "the write may have happened; the gateway does not send it again without confirmation", extra=extra
            )
            return answers.refused(refusal, advice=_ADVICE)
        message = (
            f"{job.kind}.{job.entity}.{job.action} was sent, but its response was lost: it may have happened. "
            "If it is sent again, it may happen twice."
        )
        question = elicitation(message, {_QUESTION: {"type": "boolean", "title": "Send it again", "default": False}})
        state = self._states.sealed(context.message, context.caller.principal, {"job": str(job.id)})
        return input_required({_QUESTION: question}, state)

    def is_confirmed(self, context: Context, job: JobSummary) -> bool:
        """Whether the person has confirmed the retry of this job; raises RpcError for a state of another call."""
        state = self._states.opened(context.message, context.caller.principal)
        response = context.input_responses.get(_QUESTION)
        if state is None or state["job"] != str(job.id) or not isinstance(response, Mapping):
            return False
        content = response.get("content")
        return response.get("action") == "accept" and isinstance(content, Mapping) and content.get(_QUESTION) is True
