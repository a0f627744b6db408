"""What a write leaves behind in the copies, by its spec."""

import msgspec
import pytest

from gateway.context_store.sync.sources import synchronized
from gateway.context_store.sync.write_through import Write, copy_updates_of
from gateway.contract.kinds import Effect
from gateway.upstream.responses import OperationResult
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
WRITES = [
    operation for kind in CATALOG for operation in kind.operations.values() if operation.action.effect != Effect.READ
]
#: writes that no copy holds anything of
UNSEEN = {
    *("team-chat.bookmarks.create", "team-chat.ephemeral_messages.create", "team-chat.pins.create"),
    *("team-chat.scheduled_messages.create", "work-management.task_stories.create"),
    *("work-management.workspace_memberships.create", "crm-records.exports.create"),
    *("stripe.prices.create", "stripe.checkout_sessions.create", "stripe.payment_method_attachments.create"),
    *("intercom.tags.create", "intercom.tags.delete", "intercom.internal_articles.create"),
    *("intercom.internal_articles.update", "intercom.internal_articles.delete"),
    "crm-records.exports.create",
    *("google-drive.comments.create", "google-drive.replies.create", "google-drive.permissions.create"),
    *("google-drive.permissions.update", "google-drive.permissions.delete"),
    *("airtable.comments.create", "airtable.comments.update", "airtable.comments.delete"),
    *("sentry.comments.create", "sentry.comments.update", "sentry.comments.delete", "sentry.deploys.create"),
    "ashby.candidate_notes.create",
    *("jira.issue_attachments.create", "jira.issue_attachments.delete"),
    *("jira.issue_watchers.create", "jira.issue_watchers.delete"),
    *("linear.attachments.create", "linear.issue_labels.create"),
    *("shopify.inventory_adjust.create", "shopify.inventory_set.create"),
    *("shopify.metafields.create", "shopify.metafields.delete"),
    *("github.comments.create", "github.comments.update", "github.comments.delete", "github.reviews.create"),
    *("github.branches.create", "github.branches.delete", "github.labels.create"),
    *("github.review_requests.create", "github.review_requests.delete"),
    *("github.file_content.create", "github.file_content.update", "github.file_content.delete"),
    *("github.workflow_runs.rerun", "github.workflow_runs.cancel"),
    *("gitlab.branches.create", "gitlab.branches.delete", "gitlab.jobs.retry", "gitlab.labels.create"),
    *("gitlab.files.create", "gitlab.files.update", "gitlab.files.delete", "gitlab.tags.create"),
    *("gitlab.issue_notes.create", "gitlab.issue_notes.update", "gitlab.issue_notes.delete"),
    *("stripe.payment_links.create", "linear.issue_relations.create", "linear.project_updates.create"),
    *("google-drive.comments.update", "google-drive.comments.delete", "intercom.tickets.create"),
    *("github.review_comments.reply", "github.workflow_dispatches.create"),
    *("zendesk-talk.availabilities.update", "greenhouse.notes.create"),
    *("zendesk-chat.bans.create", "zendesk-chat.bans.delete", "zendesk-chat.routing_settings.update"),
    *(f"zendesk-chat.skills.{each}" for each in ("create", "update", "delete")),
    *("zendesk-chat.goals.delete", "paypal-transaction.captures.refund"),
    *("gong.flow_prospects.create", "sendgrid.mail.send"),
    *("customer-io.broadcast_trigger.create", "customer-io.exports.create"),
    *(f"customer-io.transactional_{each}.create" for each in ("email", "inbox_message", "push", "sms")),
    *(f"customer-io.{each}.create" for each in ("collections", "reporting_webhooks", "snippets")),
    *(f"customer-io.{each}.update" for each in ("collections", "reporting_webhooks", "snippets")),
    "customer-io.transactional_message_contents.update",
    *("pylon.issue_threads.create", "pylon.articles.create", "pylon.articles.update", "pylon.collections.create"),
    *(f"pylon.{each}.{action}" for each in ("milestones", "projects", "tasks") for action in ("create", "update")),
    *(f"crm-query.{each}.create" for each in ("campaigns", "cases", "events", "notes")),
    *(f"crm-query.{each}.update" for each in ("campaigns", "cases", "events", "notes")),
    *(f"crm-query.{each}.delete" for each in ("campaigns", "cases", "events", "notes")),
    *(f"amazon-seller-partner.listings_items.{action}" for action in ("update", "delete")),
    *("amazon-seller-partner.reports.create", "amazon-seller-partner.reports.cancel"),
    *("amazon-ads.sponsored_product_negative_keywords.create", "google-ads.labels.create"),
    *(f"linkedin-ads.account_users.{action}" for action in ("create", "update", "delete")),
    *("linkedin-ads.conversions.create", "linkedin-ads.conversions.update", "linkedin-ads.conversion_events.create"),
    *("linkedin-ads.campaign_conversions.create", "linkedin-ads.campaign_conversions.delete"),
    *(f"snowflake.record.{action}" for action in ("create", "update", "delete")),
    *("snowflake.statements.create", "snowflake.statements.cancel"),
    *("gitlab.merge_request_notes.create", "gitlab.merge_request_notes.update", "gitlab.merge_request_notes.delete"),
}


def write(kind, entity, action, params, result):
    operation = CATALOG.kind(kind).operation(entity, action)
    return Write(operation, params, OperationResult(result=msgspec.Raw(msgspec.json.encode(result))))


def test_every_write_says_what_it_leaves_behind():
    changed = {f"{each.spec.kind}.{each}": {update.entity for update in copy_updates_of(each)} for each in WRITES}
    copied = {kind.name: set(synchronized(kind)) for kind in CATALOG}

    assert {name for name, entities in changed.items() if not entities} == UNSEEN
    assert [name for name, entities in changed.items() if not entities <= copied[name.split(".")[0]]] == []


def test_a_deletion_removes_what_its_path_names():
    deletion = write("work-management", "tasks", "delete", {"task_gid": "7"}, {})

    [removal] = copy_updates_of(deletion.operation)

    assert (removal.entity, deletion.filled(removal.deleted_id)) == ("tasks", "7")


def test_names_are_filled_in_from_params_and_else_from_the_answer():
    created = write("team-chat", "messages", "create", {"channel": "C1", "text": "t"}, {"ts": "1.5", "text": "other"})

    assert created.filled("{channel}/{ts}") == "C1/1.5"
    assert created.all_filled({"a": "{text}", "b": 3, "c": "{none}", "d": True}) == {
        "a": "t",
        "b": 3,
        "c": None,
        "d": True,
    }


def test_a_value_keeps_its_type():
    updated = write("support-desk", "ticket_comments", "create", {"ticket_id": 7, "ticket": {"comment": {}}}, {})

    assert updated.filled("{ticket_id}") == 7
    assert updated.filled("{ticket.comment}") == {}


@pytest.mark.parametrize(
    ("params", "entities"),
    [
        ({"ticket_id": 1, "ticket": {"status": "open"}}, ["tickets"]),
        ({"ticket_id": 1, "ticket": {"comment": {"body": "b"}}}, ["tickets", "ticket_comments"]),
    ],
)
def test_comments_are_read_again_only_where_one_was_made(params, entities):
    comment = write("support-desk", "tickets", "update", params, {"id": 1})

    applying = [update.entity for update in copy_updates_of(comment.operation) if comment.applies(update)]

    assert applying == entities


def test_a_write_that_answers_no_object_has_no_members():
    assert write("workspace-notes", "blocks", "create", {"block_id": "b"}, []).value("id") is None
