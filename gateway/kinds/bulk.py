"""The model of bulk requests, which replace many calls of one operation."""

from typing import Annotated

from pydantic import Field

from gateway.kinds.long_running import FollowUp
from gateway.kinds.members import JsonPath, JsonSchema

#: the param of a bulk request that is the list of its items
ITEMS = "items"


class Bulk(FollowUp):
    """A request that replaces many calls of the operation; its response has the record of each call."""

    #: where the list of items goes, in the keywords of a param: `in`, `as`, `style`, `explode`
    items: JsonSchema = Field(default_factory=dict)
    #: the item of a call: `{name}` is the value of that param; an object has such members
    item: str | dict[str, str]
    #: maximum number of items of one request
    max_items: int = Field(ge=2)
    #: the params that the request takes once for all calls, with the keywords that differ from the operation's; with
    #: `type: array`, a comma-separated text becomes a list. A call with other params is sent separately
    params: dict[str, JsonSchema] = Field(default_factory=dict)
    #: the params without which a call is sent separately
    required: tuple[str, ...] = ()
    #: the path of the list of records in the response
    records: JsonPath
    #: how a record is matched to its call: param → the path of its value in the record
    match: Annotated[dict[str, JsonPath], Field(min_length=1)]
    #: the statuses by which the application states that it has executed none of the items
    rejects_all: tuple[int, ...] = ()

    @property
    def item_params(self) -> tuple[str, ...]:
        """The params that an item holds."""
        texts = [self.item] if isinstance(self.item, str) else self.item.values()
        return tuple(text.strip("{}") for text in texts)
