"""Each kind over HTTP against the sandbox: two pages, a record, a write where there is one, an error, a limit."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.kinds.members import value_at
from tests.harness.sandbox import fault

OAUTH = {"refresh_token": "refresh", "client_id": "app", "client_secret": "secret"}


@dataclass(frozen=True)
class Story:
    """What is told of one kind."""

    kind: str
    credentials: dict[str, str]
    #: a list with a page so small that there is a second one: entity, params, the param that turns the page, its Meta
    listed: tuple[str, dict[str, Any], str, str]
    #: the member that identifies a record, and the param of get
    identified: tuple[str, str]
    #: something the application refuses: entity, action, params, code
    refused: tuple[str, str, dict[str, Any], str]
    #: a write: entity, action, params, a place in its record and what stands there
    written: tuple[str, str, dict[str, Any], str, Any] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    #: params of get that name what the record lies in
    place: dict[str, Any] = field(default_factory=dict)
    #: the value of the param of get
    value: Any = "{id}"


IN_TABLE = {"base_id": "app1", "table_id_or_name": "tbl1"}
IN_REPOSITORY = {"owner": "acme", "repo": "shop"}
IN_PROJECT = {"project_id": "acme/shop"}
OF_PROFILE = {"Amazon-Advertising-API-Scope": "222333444555666"}
IN_ORGANIZATION = {"organization_slug": "acme"}
STORIES = [
    Story(
        "snowflake",
        {"programmatic_access_token": "token"},
        ("record", {"statement": "SELECT * FROM users"}, "partition", "statement_handle"),
        ("ID", "statement"),
        ("statements", "get", {"statementHandle": "0"}, "upstream_not_found"),
        (
            "record",
            "create",
            {"statement": "INSERT INTO users (name) VALUES ('Ada')"},
            "stats.numRowsInserted",
            1,
        ),
        {"account": "acme-main"},
        value="SELECT * FROM users WHERE id = '1'",
    ),
    Story(
        "confluence",
        {"username": "ada@example.com", "password": "token"},
        ("pages", {"limit": 2}, "cursor", "next"),
        ("id", "id"),
        ("pages", "get", {"id": "1"}, "upstream_not_found"),
        (
            "comments",
            "create",
            {"pageId": "{id}", "body": {"representation": "storage", "value": "<p>Hi</p>"}},
            "body.value",
            "<p>Hi</p>",
        ),
        {"subdomain": "acme"},
    ),
    Story(
        "ashby",
        {"api_key": "key"},
        ("candidates", {"limit": 2}, "cursor", "cursor"),
        ("id", "id"),
        ("candidates", "get", {"id": "nothing"}, "upstream_not_found"),
        ("candidates", "update", {"candidateId": "{id}", "name": "Ada"}, "name", "Ada"),
    ),
    Story(
        "gmail",
        {"refresh_token": "refresh", "access_token": "token"},
        ("threads", {"maxResults": 2}, "pageToken", "nextPageToken"),
        ("id", "threadId"),
        ("threads", "get", {"threadId": "nothing"}, "upstream_not_found"),
        ("labels", "create", {"name": "Bills"}, "name", "Bills"),
    ),
    Story(
        "google-drive",
        {"refresh_token": "refresh", "access_token": "token"},
        ("files", {"pageSize": 2}, "pageToken", "nextPageToken"),
        ("id", "fileId"),
        ("files", "get", {"fileId": "nothing"}, "upstream_not_found"),
        ("files", "update", {"fileId": "{id}", "name": "Plan"}, "name", "Plan"),
    ),
    Story(
        "jira",
        {"username": "ada@example.com", "password": "token"},
        ("users", {"maxResults": 2}, "startAt", "next"),
        ("accountId", "accountId"),
        ("issues", "get", {"issueIdOrKey": "ACME-0"}, "upstream_not_found"),
        ("issues_assignee", "update", {"issueIdOrKey": "ACME-7", "accountId": "u1"}, "accountId", "u1"),
        {"subdomain": "acme"},
    ),
    Story(
        "support-desk",
        {"email": "agent@example.com", "api_token": "token"},
        ("users", {"per_page": 2}, "page", "next_page"),
        ("id", "user_id"),
        ("users", "get", {"user_id": 10**12}, "upstream_not_found"),
        ("users", "create", {"user": {"name": "Ada", "role": "agent"}}, "name", "Ada"),
        {"subdomain": "acme"},
    ),
    Story(
        "zendesk-talk",
        {"email": "ada@example.com", "api_token": "token"},
        ("phone_numbers", {}, "page", "next_page"),
        ("id", "phone_number_id"),
        ("phone_numbers", "get", {"phone_number_id": 999999999}, "upstream_not_found"),
        environment={"subdomain": "acme"},
    ),
    Story(
        "clickup-api",
        {"api_key": "token"},
        ("tasks", {"list_id": "4"}, "page", "next"),
        ("id", "task_id"),
        ("tasks", "get", {"task_id": "nothing"}, "upstream_not_found"),
        ("tasks", "update", {"task_id": "{id}", "name": "Call Ada"}, "name", "Call Ada"),
    ),
    Story(
        "zendesk-chat",
        {"access_token": "token"},
        ("agents", {"limit": 2}, "since_id", "next"),
        ("id", "agent_id"),
        ("agents", "get", {"agent_id": 999999999}, "upstream_not_found"),
        ("agents", "update", {"agent_id": "{id}", "display_name": "Ada"}, "display_name", "Ada"),
        {"subdomain": "acme"},
    ),
    Story(
        "monday",
        {"api_key": "token"},
        ("users", {"limit": 2}, "page", "next"),
        ("id", "id"),
        ("users", "get", {"id": "nothing"}, "upstream_not_found"),
        ("updates", "create", {"item_id": "{id}", "body": "Hello"}, "body", "Hello"),
    ),
    Story(
        "crm-records",
        {"private_app_token": "token"},
        ("contacts", {"limit": 2}, "after", "next_cursor"),
        ("id", "contactId"),
        ("contacts", "get", {"contactId": "nobody"}, "upstream_not_found"),
    ),
    Story(
        "crm-query",
        OAUTH,
        ("accounts", {"q": "SELECT Id, Name FROM Account LIMIT 2500"}, "nextRecordsUrl", "nextRecordsUrl"),
        ("Id", "id"),
        ("query", "list", {"q": "SELECT nonsense"}, "upstream_rejected"),
    ),
    Story(
        "workspace-notes",
        {"token": "token"},
        ("pages", {"page_size": 2}, "start_cursor", "next_cursor"),
        ("id", "page_id"),
        ("pages", "get", {"page_id": "00000000-0000-0000-0000-000000000000"}, "upstream_not_found"),
        (
            "comments",
            "create",
            {"parent": {"page_id": "{id}"}, "rich_text": [{"type": "text", "text": {"content": "hello"}}]},
            "object",
            "comment",
        ),
    ),
    Story(
        "team-chat",
        {"bot_key": "token"},
        ("channels", {"limit": 2}, "cursor", "next_cursor"),
        ("id", "channel"),
        ("channels", "get", {"channel": "C-nowhere"}, "upstream_not_found"),
        ("messages", "create", {"channel": "{id}", "text": "hello"}, "text", "hello"),
    ),
    Story(
        "work-management",
        {"token": "token"},
        ("projects", {"limit": 2}, "offset", "next_page.offset"),
        ("gid", "project_gid"),
        ("projects", "get", {"project_gid": "0"}, "upstream_not_found"),
        ("projects", "update", {"project_gid": "{id}", "data": {"name": "Renamed"}}, "name", "Renamed"),
    ),
    Story(
        "incident-management",
        {"api_key": "token"},
        ("incidents", {"page_size": 2}, "after", "next_cursor"),
        ("id", "id"),
        ("incidents", "get", {"id": "nothing"}, "upstream_not_found"),
    ),
    Story(
        "github",
        {"token": "token"},
        ("issues", {**IN_REPOSITORY, "per_page": 2}, "after", "endCursor"),
        ("number", "number"),
        ("releases", "update", {**IN_REPOSITORY, "release_id": 10**9, "draft": False}, "upstream_not_found"),
        ("issues", "create", {**IN_REPOSITORY, "title": "Login fails"}, "title", "Login fails"),
        place=IN_REPOSITORY,
    ),
    Story(
        "gitlab",
        {"access_token": "token"},
        ("issues", {**IN_PROJECT, "per_page": 2}, "page", "next_url"),
        ("iid", "issue_iid"),
        ("issues", "get", {**IN_PROJECT, "issue_iid": 10**9}, "upstream_not_found"),
        ("issues", "update", {**IN_PROJECT, "issue_iid": "{id}", "title": "Login fails"}, "title", "Login fails"),
        place=IN_PROJECT,
    ),
    Story(
        "facebook-marketing",
        {"access_token": "token"},
        ("campaigns", {"account_id": "1", "limit": 2}, "after", "after"),
        ("id", "campaign_id"),
        ("campaigns", "get", {"campaign_id": "nothing"}, "upstream_not_found"),
        ("campaigns", "update", {"campaign_id": "{id}", "name": "Spring"}, "name", "Spring"),
    ),
    Story(
        "freshdesk",
        {"api_key": "key"},
        ("contacts", {"per_page": 2}, "page", "next"),
        ("id", "id"),
        ("contacts", "get", {"id": 10**12}, "upstream_not_found"),
        ("contacts", "update", {"id": "{id}", "job_title": "Buyer"}, "job_title", "Buyer"),
        {"subdomain": "acme"},
    ),
    Story(
        "stripe",
        {"api_key": "sk_test_1"},
        ("customers", {"limit": 2}, "starting_after", "next"),
        ("id", "id"),
        ("customers", "get", {"id": "cus_0"}, "upstream_not_found"),
        ("customers", "update", {"id": "{id}", "metadata": {"tier": "gold"}}, "metadata.tier", "gold"),
    ),
    Story(
        "intercom",
        {"access_token": "token"},
        ("contacts", {"per_page": 2}, "starting_after", "next_page"),
        ("id", "id"),
        ("contacts", "get", {"id": "nobody"}, "upstream_not_found"),
        ("contacts", "update", {"id": "{id}", "name": "Ada"}, "name", "Ada"),
    ),
    Story(
        "airtable",
        {"personal_access_token": "token"},
        ("records", {**IN_TABLE, "pageSize": 2}, "offset", "offset"),
        ("id", "record_id"),
        ("records", "get", {**IN_TABLE, "record_id": "rec0"}, "upstream_not_found"),
        ("records", "update", {**IN_TABLE, "record_id": "{id}", "fields": {"a": "b"}}, "fields.a", "b"),
        place=IN_TABLE,
    ),
    Story(
        "shopify",
        {"api_key": "token"},
        ("products", {"limit": 2}, "page_info", "endCursor"),
        ("id", "product_id"),
        ("products", "get", {"product_id": 10**12}, "upstream_not_found"),
        ("products", "create", {"product": {"title": "Summer shirt"}}, "product.title", "Summer shirt"),
        {"shop": "acme"},
    ),
    Story(
        "linear",
        {"api_key": "key"},
        ("issues", {"first": 2}, "after", "endCursor"),
        ("id", "id"),
        ("issues", "get", {"id": "nothing"}, "upstream_not_found"),
        ("issues", "update", {"id": "{id}", "title": "Login fails"}, "issue.title", "Login fails"),
    ),
    Story(
        "sendgrid",
        {"api_key": "key"},
        ("lists", {"page_size": 2}, "page_token", "next"),
        ("id", "id"),
        ("lists", "get", {"id": "nothing"}, "upstream_not_found"),
        ("lists", "update", {"id": "{id}", "name": "News"}, "name", "News"),
    ),
    Story(
        "sentry",
        {"auth_token": "token"},
        ("releases", {**IN_ORGANIZATION, "per_page": 2}, "cursor", "next_cursor"),
        ("version", "version"),
        ("issues", "get", {**IN_ORGANIZATION, "issue_id": "nothing"}, "upstream_not_found"),
        ("releases", "update", {**IN_ORGANIZATION, "version": "{id}", "ref": "a1b2"}, "ref", "a1b2"),
        place=IN_ORGANIZATION,
    ),
    Story(
        "outreach",
        {"access_token": "token", "refresh_token": "refresh", "client_id": "app", "client_secret": "secret"},
        ("accounts", {"page[size]": 2}, "page[after]", "next_link"),
        ("id", "id"),
        ("accounts", "get", {"id": 10**12}, "upstream_not_found"),
        ("accounts", "update", {"id": "{id}", "attributes": {"name": "Acme"}}, "attributes.name", "Acme"),
    ),
    Story(
        "twilio",
        {"account_sid": "AC1", "auth_token": "token"},
        ("accounts", {"PageSize": 2}, "PageToken", "next_page_uri"),
        ("sid", "sid"),
        ("accounts", "get", {"sid": "nothing"}, "upstream_not_found"),
        (
            "messages",
            "create",
            {"AccountSid": "{id}", "To": "+15558675310", "From": "+15017122661", "Body": "Hello"},
            "Body",
            "Hello",
        ),
    ),
    Story(
        "chargebee",
        {"api_key": "key"},
        ("customer", {"limit": 2}, "offset", "next_offset"),
        ("id", "id"),
        ("customer", "get", {"id": "nothing"}, "upstream_not_found"),
        ("customer", "update", {"id": "{id}", "company": "Acme"}, "company", "Acme"),
        {"site": "acme-test"},
    ),
    Story(
        "woocommerce",
        {"api_key": "key", "api_secret": "secret"},
        ("orders", {"per_page": 2}, "page", "next"),
        ("id", "id"),
        ("orders", "get", {"id": 999999}, "upstream_not_found"),
        ("orders", "update", {"id": "{id}", "status": "completed"}, "status", "completed"),
        {"shop": "shop.example.com"},
    ),
    Story(
        "customer-io",
        {"app_api_key": "key"},
        ("newsletters", {"limit": 2}, "start", "next"),
        ("id", "newsletter_id"),
        ("newsletters", "get", {"newsletter_id": 999999}, "upstream_not_found"),
        ("collections", "create", {"name": "products", "data": [{"sku": "a1"}]}, "name", "products"),
    ),
    Story(
        "granola",
        {"api_key": "key"},
        ("notes", {"page_size": 2}, "cursor", "cursor"),
        ("id", "note_id"),
        ("notes", "get", {"note_id": "nothing"}, "upstream_not_found"),
    ),
    Story(
        "harvest",
        {"token": "key", "account_id": "1"},
        ("time_entries", {"per_page": 2}, "cursor", "next_link"),
        ("id", "id"),
        ("time_entries", "get", {"id": 999999999}, "upstream_not_found"),
        ("time_entries", "update", {"id": "{id}", "notes": "Review"}, "notes", "Review"),
    ),
    Story(
        "typeform",
        {"access_token": "key"},
        ("forms", {"page_size": 2}, "page", "page_count"),
        ("id", "form_id"),
        ("forms", "get", {"form_id": "nothing"}, "upstream_not_found"),
    ),
    Story(
        "mailchimp",
        {"api_key": "key-us6"},
        ("campaigns", {"count": 2}, "offset", "total_items"),
        ("id", "campaign_id"),
        ("campaigns", "get", {"campaign_id": "nothing"}, "upstream_not_found"),
        ("campaigns", "update", {"campaign_id": "{id}", "settings": {"title": "May"}}, "settings.title", "May"),
        {"data_center": "us6"},
    ),
    Story(
        "klaviyo",
        {"api_key": "key"},
        ("profiles", {"page[size]": 2}, "page[cursor]", "next"),
        ("id", "id"),
        ("profiles", "get", {"id": "nothing"}, "upstream_not_found"),
        ("profiles", "update", {"id": "{id}", "attributes": {"last_name": "L"}}, "attributes.last_name", "L"),
    ),
    Story(
        "orb",
        {"api_key": "key"},
        ("customers", {"limit": 2}, "cursor", "next_cursor"),
        ("id", "customer_id"),
        ("customers", "get", {"customer_id": "nothing"}, "upstream_not_found"),
        ("customers", "update", {"customer_id": "{id}", "name": "Acme"}, "name", "Acme"),
    ),
    Story(
        "pylon",
        {"api_token": "key"},
        ("accounts", {"limit": 2}, "cursor", "next_cursor"),
        ("id", "id"),
        ("accounts", "get", {"id": "nothing"}, "upstream_not_found"),
        ("accounts", "update", {"id": "{id}", "name": "Acme"}, "name", "Acme"),
    ),
    Story(
        "reddit-ads",
        OAUTH,
        ("campaigns", {"ad_account_id": "t2_1", "page.size": 2}, "page.token", "next_link"),
        ("id", "campaign_id"),
        ("campaigns", "get", {"campaign_id": "nothing"}, "upstream_not_found"),
        ("campaigns", "update", {"campaign_id": "{id}", "name": "Spring"}, "name", "Spring"),
    ),
    Story(
        "pinterest",
        {"refresh_token": "refresh", "access_token": "key"},
        ("boards", {"page_size": 2}, "bookmark", "cursor"),
        ("id", "board_id"),
        ("boards", "get", {"board_id": "999999999"}, "upstream_not_found"),
        ("boards", "update", {"board_id": "{id}", "name": "Food"}, "name", "Food"),
    ),
    Story(
        "snapchat-marketing",
        OAUTH,
        ("campaigns", {"ad_account_id": "1"}, "cursor", "next_link"),
        ("id", "id"),
        ("campaigns", "get", {"id": "nothing"}, "upstream_not_found"),
        (
            "campaigns",
            "update",
            {
                "id": "{id}",
                "ad_account_id": "1",
                "name": "May",
                "status": "PAUSED",
                "start_time": "2026-05-01T00:00:00Z",
            },
            "name",
            "May",
        ),
    ),
    Story(
        "amazon-ads",
        {**OAUTH, "access_token": "token"},
        ("sponsored_product_campaigns", {**OF_PROFILE, "maxResults": 2}, "nextToken", "next_token"),
        ("campaignId", "campaignIdFilter"),
        (
            "sponsored_product_campaigns",
            "get",
            {**OF_PROFILE, "campaignIdFilter": {"include": ["nothing"]}},
            "upstream_not_found",
        ),
        (
            "sponsored_product_campaigns",
            "update",
            {**OF_PROFILE, "campaignId": "{id}", "name": "May"},
            "name",
            "May",
        ),
        place=OF_PROFILE,
        value={"include": ["{id}"]},
    ),
    Story(
        "amazon-seller-partner",
        {"lwa_app_id": "app", "lwa_client_secret": "secret", "refresh_token": "refresh", "access_token": "token"},
        ("orders", {"CreatedAfter": "2026-01-01T00:00:00Z", "MaxResultsPerPage": 2}, "NextToken", "next_token"),
        ("AmazonOrderId", "orderId"),
        ("orders", "get", {"orderId": "nothing"}, "upstream_not_found"),
        (
            "listings_items",
            "update",
            {
                "sellerId": "A1EXAMPLE",
                "sku": "SHOE-42",
                "productType": "SHOES",
                "patches": [{"op": "delete", "path": "/attributes/color"}],
            },
            "sku",
            "SHOE-42",
        ),
    ),
    Story(
        "linkedin-ads",
        OAUTH,
        ("campaigns", {"account_id": 512, "pageSize": 2}, "pageToken", "nextPageToken"),
        ("id", "id"),
        ("campaigns", "get", {"account_id": 512, "id": 999_999_999}, "upstream_not_found"),
        place={"account_id": 512},
    ),
    Story(
        "gong",
        {"access_key": "key", "access_key_secret": "secret"},
        ("users", {}, "cursor", "cursor"),
        ("id", "id"),
        ("calls", "get", {"id": "1"}, "upstream_not_found"),
        (
            "flow_prospects",
            "create",
            {"crmProspectsIds": ["003"], "flowId": "8", "flowInstanceOwnerEmail": "ada@example.com"},
            "flowId",
            "8",
        ),
    ),
    Story(
        "zoho-crm",
        OAUTH,
        ("leads", {"per_page": 2}, "page", "next"),
        ("id", "id"),
        ("leads", "get", {"id": "1"}, "upstream_not_found"),
        ("leads", "update", {"id": "{id}", "lead": {"Company": "Example"}}, "Company", "Example"),
    ),
    Story(
        "greenhouse",
        OAUTH,
        ("candidates", {"per_page": 2}, "cursor", "next"),
        ("id", "id"),
        ("candidates", "update", {"id": 999999, "company": "Example"}, "upstream_not_found"),
        ("candidates", "update", {"id": "{id}", "company": "Example"}, "company", "Example"),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.kind)
async def test_a_kind_is_read_written_and_refused(api, story):
    connector = await api.connector(story.kind, story.credentials, environment=story.environment)
    entity, params, turning, place = story.listed
    member, named = story.identified

    first = await connector.execute(entity, "list", params)
    following = value_at(first["connector_metadata"], tuple(place.split(".")))
    second = await connector.execute(entity, "list", first["next"])
    identifier = first["result"][0][member]
    read = await connector.execute(entity, "get", {**story.place, named: _filled(story.value, identifier)})
    refused = await connector.send(*story.refused[:3])

    assert following
    assert turning in first["next"]
    assert second["result"]
    assert {record[member] for record in first["result"]}.isdisjoint(record[member] for record in second["result"])
    assert read["result"][member] == identifier
    assert refused.json()["code"] == story.refused[3]
    assert refused.json()["upstream"]["status"]


@pytest.mark.parametrize("story", [story for story in STORIES if story.written], ids=lambda story: story.kind)
async def test_a_kind_is_written(api, story):
    connector = await api.connector(story.kind, story.credentials, environment=story.environment)
    entity, params, *_ = story.listed
    listed = await connector.execute(entity, "list", params)
    entity, action, params, place, expected = story.written

    written = await connector.execute(entity, action, _filled(params, listed["result"][0][story.identified[0]]))

    assert value_at(written["result"], tuple(place.split("."))) == expected


def _filled(value, identifier):
    if isinstance(value, dict):
        return {name: _filled(member, identifier) for name, member in value.items()}
    if isinstance(value, list):
        return [_filled(member, identifier) for member in value]
    return identifier if value == "{id}" else value


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.kind)
async def test_a_kinds_rate_limit_is_reported_with_when_to_retry(api, running, story):
    connector = await api.connector(story.kind, story.credentials, environment=story.environment)
    limit = {"kind": story.kind, "status": 429, "headers": {"Retry-After": "17"}, "times": 1}

    async with fault(running.sandbox_url, **limit):
        answer = await connector.send(story.listed[0], "list", story.listed[1])

    assert (answer.status, answer.json()["code"]) == (429, "upstream_rate_limited")
    assert int(answer.headers["Retry-After"]) == 17
