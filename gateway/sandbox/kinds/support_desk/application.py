"""Support desk: page numbers or cursors, tickets with comments and audits, files, and the rest read-only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox import files, filters
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply, decoded_basic, nested
from gateway.sandbox.kinds.support_desk import attachments, pages
from gateway.sandbox.kinds.support_desk.exports import Exports
from gateway.sandbox.kinds.support_desk.tickets import Tickets
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row


class SupportDesk(Application):
    """Tickets, users, organizations, help center articles and the configuration of the desk."""

    counts: ClassVar = {
        "tickets": 500,
        "users": 240,
        "organizations": 60,
        "groups": 12,
        "ticket_comments": 1500,
        "ticket_audits": 1500,
        "ticket_metrics": 500,
        "satisfaction_ratings": 120,
        "organization_memberships": 240,
        "group_memberships": 60,
        "articles": 80,
        "article_attachments": 160,
        "brands": 3,
        "sla_policies": 5,
        "ticket_forms": 4,
        "tags": 20,
    }
    references: ClassVar = {
        "requester_id": "users",
        "submitter_id": "users",
        "assignee_id": "users",
        "author_id": "users",
        "user_id": "users",
        "group_id": "groups",
        "default_group_id": "groups",
        "organization_id": "organizations",
        "brand_id": "brands",
        "ticket_form_id": "ticket_forms",
        "ticket_id": "tickets",
        "article_id": "articles",
    }
    parents: ClassVar = {
        "ticket_comments": ("ticket_id", "tickets"),
        "ticket_audits": ("ticket_id", "tickets"),
        "ticket_metrics": ("ticket_id", "tickets"),
        "article_attachments": ("article_id", "articles"),
    }
    unfiltered = frozenset({"sort_by", "sort_order", "include", "start_time", "end_time", "access", "cursor"})
    standing_headers: ClassVar = {
        "X-Rate-Limit": "100000",
        "X-Rate-Limit-Remaining": "99999",
        "ratelimit-limit": "100000",
        "ratelimit-remaining": "99999",
        "ratelimit-reset": "60",
    }
    codes: ClassVar = {
        400: "BadRequest",
        401: "Couldn't authenticate you",
        403: "Forbidden",
        404: "RecordNotFound",
        409: "RecordConflict",
        422: "RecordInvalid",
        429: "APIRateLimitExceeded",
        503: "ServiceUnavailable",
    }
    # The application accepts both encodings.
    tokens: ClassVar[TokenStyle] = TokenStyle(lifetime=1800, rotates=True, encodings=("json", "form"))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tickets = Tickets(self)
        self.exports = Exports(self)

    def usual_id(self, table: str, number: int) -> int | str:
        if table == "tickets":
            return number
        return super().usual_id(table, number)

    def rows_of(self, table: str) -> Iterable[Row]:
        rows = list(super().rows_of(table))
        for number, row in enumerate(rows, 1):
            self._fill(table, number, row)
        return rows

    def _fill(self, table: str, number: int, row: Row) -> None:
        """Fill in members beyond the fields of the spec: attachments of comments, events of audits, sizes of files."""
        record = row.record
        if table == "tickets":
            record["raw_subject"] = record["subject"]
            # Closed tickets refuse updates: only the last hundred may be closed, so that demos do not meet them.
            if record["status"] == "closed" and not self.count_of(table) - 100 < number < self.count_of(table):
                record["status"] = "solved"
            record["via"] = {"channel": "web" if number % 2 else "email", "source": {}}
            record["generated_timestamp"] = int(row.changed)
        elif table == "ticket_comments":
            record["type"] = "Comment"
            record["audit_id"] = self.id_of("ticket_audits", number)
            record["plain_body"] = record["body"] = record["html_body"].removeprefix("<p>").removesuffix("</p>")
            record["attachments"] = (
                [attachments.record(files.number_for(1000 + number), "")] if number % 10 == 0 else []
            )
        elif table == "ticket_audits":
            record["events"] = [{"id": number, "type": "Comment", "public": True, "body": "As the customer wrote."}]
        elif table == "tags":
            record["name"] = f"tag-{number:02d}"
        elif table == "article_attachments":
            row.refs["file"] = files.number_for(2000 + number)
            record["size"] = files.size_of(row.refs["file"])
            record["file_name"] = f"article-file-{number}.bin"

    def require_row(self, table: str, row_id: object) -> Row:
        """As in the base class; any file number finds a file of an article, and determines its size."""
        text = str(row_id)
        if table == "tickets":
            return self._not_deleted(super().require_row(table, row_id))
        if table != "article_attachments" or self.store.table(table).get(text) or not files.is_number(text):
            return super().require_row(table, row_id)
        first = next(iter(self.store.table(table)))
        members = {"id": int(text), "file_name": f"file-{text}.bin", "size": files.size_of(int(text))}
        return Row(text, {**first.record, **members}, {**first.refs, "file": int(text)})

    def _not_deleted(self, ticket: Row) -> Row:
        if ticket.record["status"] == "deleted":
            raise Refusal(404)
        return ticket

    # Requests and responses

    def authorize(self, call: Call) -> None:
        """As in the base class; the user name of Basic must end with `/token`."""
        super().authorize(call)
        if call.headers["authorization"].lower().startswith("basic"):
            username, _, _ = decoded_basic(call.headers["authorization"].split(" ")[-1])
            if not username.endswith("/token"):
                raise Refusal(401)

    def bad_body(self, faults: list[str]) -> Refusal:
        return Refusal(422, message="; ".join(faults))

    def shown(self, operation: Operation, row: Row, call: Call) -> Record:
        """The record; URLs of files have the origin that the caller used."""
        record = row.record
        if operation.entity_id == "article_attachments":
            return {**record, "content_url": f"{call.origin}/hc/article_attachments/{row.refs['file']}"}
        if record.get("attachments"):
            moved = [attachments.record(int(known["id"]), call.origin) for known in record["attachments"]]
            return {**record, "attachments": moved}
        return record

    def listed(self, operation: Operation, rows: Sequence[Row], call: Call) -> Reply:
        """A page by number with the addresses of its neighbours, or by cursor where `page[size]` asks for one."""
        rows = [row for row in rows if row.record.get("status") != "deleted"]
        sort = call.query.get("sort_by")
        if sort or "sort_order" in call.query:
            rows = filters.ordered(rows, sort and sort.split(".")[0], descending=call.query.get("sort_order") == "desc")
        place = operation.action.records or ()
        if "page[size]" in call.query:
            page, meta = pages.by_cursor(rows, call)
        else:
            page, meta = pages.by_number(rows, call)
        return Reply({**nested(place, [self.shown(operation, row, call) for row in page.items]), **meta})

    def handlers(self) -> dict[str, Handler]:
        return {
            "GET /ticket_audits.json": lambda call: pages.of_audits(self.store.table("ticket_audits"), call),
            "POST /tickets.json": self.tickets.create,
            "PUT /tickets/{ticket_id}.json": self.tickets.update,
            "DELETE /tickets/{ticket_id}.json": self.tickets.delete,
            "GET /attachments/{attachment_id}.json": attachments.described,
            "GET /satisfaction_ratings.json": self.list_ratings,
            "GET /users/me.json": self.me,
            **self.exports.handlers(),
        }

    def files(self) -> list[Route]:
        """The files of attachments; their URLs need no credentials."""
        return [
            Route("GET", "/attachments/token/{number}/", attachments.content, is_open=True),
            Route("GET", "/hc/article_attachments/{number}", attachments.content, is_open=True),
        ]

    def routes(self) -> list[Route]:
        """The routes; every path exists with `.json` and without."""
        found = super().routes()
        paths = {(route.method, route.path) for route in found}
        plain = [
            replace(route, path=route.path.removesuffix(".json"))
            for route in found
            if route.path.endswith(".json") and not route.is_open
        ]
        return [*found, *(route for route in plain if (route.method, route.path) not in paths)]

    def work_on(self, operation: Operation, call: Call, item: Any, now: float) -> Row:
        """Create, delete or change one ticket of a long operation; the item or the call has the changes."""
        if not isinstance(item, Mapping) and operation.method == "DELETE":
            return self.tickets.remove(item, now)
        if isinstance(item, Mapping) and "id" not in item:
            return self.tickets.add_row(item, now)
        changes = dict(item if isinstance(item, Mapping) else call.body["ticket"])
        row = self.require_row("tickets", changes.pop("id", item))
        self.tickets.apply(row, changes, now)
        return row

    def list_ratings(self, call: Call) -> Reply:
        """The ratings between `start_time` and `end_time`, in Unix seconds."""
        operation = self.kind.operation("satisfaction_ratings", "list")
        begin, end = (float(call.query.get(name) or usual) for name, usual in (("start_time", 0), ("end_time", 1e12)))
        rows = [row for row in self.store.table("satisfaction_ratings") if begin <= row.changed <= end]
        return self.listed(operation, filters.matching(rows, call.query, {"page", "per_page", *self.unfiltered}), call)

    def me(self, call: Call) -> Reply:
        return Reply({"user": next(iter(self.store.table("users"))).record})
