"""Asking a person whether a write that may have happened is to be sent again, in the client where it can ask."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result, elicitation, input_required
from gateway.agents.tools import answers
from gateway.errors import OutcomeUnknown
from gateway.jobs.model import JobSummary

if TYPE_CHECKING:
    from gateway.agents.mcp.request_state import RequestStates

#: the key of the question, and of the answer in its form
_QUESTION = "confirm"
_ADVICE = (
    "Look the record up. Where the write did not happen, or may happen twice, call job again with do: retry and "
    "confirm: true."
)


class RetryConfirmation:
    """The question; the job that it is about travels with the client, sealed."""

    def __init__(self, states: "RequestStates") -> None:
        self._states = states

    def ask(self, context: Context, job: JobSummary) -> Result:
        """The question to the person; the error for the model where the client cannot ask, or they said no."""
        if context.input_responses or not context.can("elicitation", "form"):
            extra = {"known": (job.error or {}).get("known")}
            refusal = OutcomeUnknown(
                "the write may have happened; the gateway does not send it again without confirmation", extra=extra
            )
            return answers.refused(refusal, advice=_ADVICE)
        message = (
            f"{job.kind}.{job.entity}.{job.action} was sent, and its answer was lost: it may have happened. "
            "Sent again, it may happen twice."
        )
        question = elicitation(message, {_QUESTION: {"type": "boolean", "title": "Send it again", "default": False}})
        state = self._states.sealed(context.message, context.caller.principal, {"job": str(job.id)})
        return input_required({_QUESTION: question}, state)

    def is_confirmed(self, context: Context, job: JobSummary) -> bool:
        """Whether the person who was asked about this job has said yes; raises RpcError for a state of another call."""
        state = self._states.opened(context.message, context.caller.principal)
        response = context.input_responses.get(_QUESTION)
        if state is None or state["job"] != str(job.id) or not isinstance(response, Mapping):
            return False
        content = response.get("content")
        return response.get("action") == "accept" and isinstance(content, Mapping) and content.get(_QUESTION) is True
