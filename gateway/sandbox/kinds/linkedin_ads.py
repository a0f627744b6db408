"""LinkedIn Ads: partial updates of Rest.li, which have no response body."""

from gateway.kinds.catalog import Operation
from gateway.sandbox.calls import Call, Record, Reply
from gateway.sandbox.spec_application import SpecApplication


class LinkedInAds(SpecApplication):
    """An update sets the members of `$set` in `patch`."""

    def body_of(self, operation: Operation, call: Call) -> Record:
        patch = call.body.get("patch")
        return dict(patch.get("$set", {})) if isinstance(patch, dict) else super().body_of(operation, call)

    def create_record(self, operation: Operation, call: Call) -> Reply:
        """204 after an update."""
        reply = super().create_record(operation, call)
        return Reply(None, 204) if operation.action_id == "update" else reply
