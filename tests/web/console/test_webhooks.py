"""Webhooks in the console: deliveries, and the forms of the page."""

import asyncio
import re

import pytest

from tests.harness.in_process import front_end
from tests.harness.waiting import eventually

PAGE = "/console/webhooks"


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url, redis_url, receiver):
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, webhook_origins=(receiver.url,)) as opened:
        yield opened


@pytest.fixture
async def webhook(api, receiver, request):
    """A webhook for connectors, whose receiver has a path for this test."""
    path = f"/{request.node.name}"
    created = (await api.post("/api/v1/webhooks", {"url": receiver.url + path, "types": ["connector.*"]})).document(201)
    receiver.secrets[path] = created["secret"]
    return {**created, "path": path}


async def sent(browser, webhook, form="", **fields):
    answer = await browser.send(f"{PAGE}/{webhook['id']}{form}", csrf=await browser.csrf(), **fields)
    assert answer.status in (200, 303), answer.body
    return answer.body.decode()


async def shown(browser, webhook, query=""):
    answer = await browser.get(f"{PAGE}/{webhook['id']}{query}")
    assert answer.status == 200
    return answer.body.decode()


async def is_shown(browser, webhook, text):
    return text in await shown(browser, webhook, "?status=succeeded")


async def test_a_delivery_is_shown_with_its_response_and_sent_again(browser, api, webhook, receiver, deliveries):
    receiver.answers[webhook["path"]] = lambda _: 200
    await api.connector()
    await eventually(lambda: receiver.ids[webhook["path"]])
    event = receiver.received[webhook["path"]][0]
    await eventually(lambda: is_shown(browser, webhook, "<pre>as told</pre>"))

    page, failed = await shown(browser, webhook), await shown(browser, webhook, "?status=failed")
    await sent(browser, webhook, f"/deliveries/{event['id']}/resend")
    await eventually(lambda: len(receiver.ids[webhook["path"]]) == 2)

    assert "<td>200 <details>" in page
    assert "<pre>as told</pre>" in page
    assert re.search(r'<td class="number">\d+ ms</td>', page)
    assert "No delivery has this status" in failed
    assert len(set(receiver.ids[webhook["path"]])) == 1


async def test_a_test_event_shows_what_the_receiver_answered(browser, webhook, receiver):
    receiver.answers[webhook["path"]] = lambda _: 500

    refused = await sent(browser, webhook, "/test")
    receiver.answers[webhook["path"]] = lambda _: 200
    taken = await sent(browser, webhook, "/test")

    assert "The receiver answered 500 after" in refused
    assert ('role="alert"' in refused, "<pre>as told</pre>" in refused) == (True, True)
    assert "The receiver answered 200 after" in taken
    assert 'role="alert"' not in taken


async def test_a_paused_webhook_receives_nothing_until_it_is_enabled(browser, api, webhook, receiver, deliveries):
    await sent(browser, webhook, status="disabled")
    paused, overview = await shown(browser, webhook), (await browser.get("/console")).body.decode()
    await api.connector()
    before = list(receiver.ids[webhook["path"]])
    await sent(browser, webhook, status="active")
    await eventually(lambda: receiver.ids[webhook["path"]])

    assert "disabled by its owner" in paused
    assert "is disabled" not in overview
    assert before == []


async def test_a_new_secret_is_shown_once_and_signs(browser, webhook, receiver):
    page = await sent(browser, webhook, "/rotate")
    [secret] = re.findall(r"whsec_[\w+/=]+", page)
    receiver.secrets[webhook["path"]] = secret

    await sent(browser, webhook, "/test")

    assert secret != webhook["secret"]
    assert secret not in await shown(browser, webhook)
    assert receiver.received[webhook["path"]][0]["type"] == "webhook.test"


async def test_a_deleted_webhook_is_not_found(browser, webhook):
    listed = (await browser.get(PAGE)).body.decode()
    await sent(browser, webhook, "/delete")

    assert webhook["url"] in listed
    assert (await browser.get(f"{PAGE}/{webhook['id']}")).status == 404
    assert b"There are no webhooks yet." in (await browser.get(PAGE)).body


async def test_a_webhook_is_created_with_its_secret_and_changed(browser, api, receiver):
    events = {"type:job.failed": "on", "type:job.unknown": "on"}
    made = await browser.send(
        PAGE, csrf=await browser.csrf(), url=f"{receiver.url}/made", entity="tickets", description="of jobs", **events
    )
    [webhook] = (await api.get("/api/v1/webhooks")).document()["data"]
    webhook["path"] = "/made"
    [receiver.secrets["/made"]] = re.findall(r"whsec_[\w+/=]+", made.body.decode())
    tested = await sent(browser, webhook, "/test")
    form = await shown(browser, webhook)
    await sent(browser, webhook, "/change", url=f"{receiver.url}/other", **{"type:record.deleted": "on"})

    changed = (await api.get(f"/api/v1/webhooks/{webhook['id']}")).document()
    assert (webhook["types"], webhook["entity"]) == (["job.failed", "job.unknown"], "tickets")
    assert "The receiver answered" in tested
    assert form.count(" checked>") == 2
    assert "whsec_" not in form
    assert (changed["types"], changed["url"]) == (["record.deleted"], f"{receiver.url}/other")
    assert "entity" not in changed or changed["entity"] is None


async def test_a_save_keeps_what_the_editor_cannot_choose(browser, api, receiver):
    connector = await api.connector()
    body = {"url": f"{receiver.url}/kept", "types": ["job.*"], "connector_id": connector.record["id"]}
    webhook = (await api.post("/api/v1/webhooks", body)).document(201)
    address = f"/api/v1/webhooks/{webhook['id']}"
    assert (await api.call("DELETE", f"/api/v1/integrations/connectors/{connector.record['id']}")).status == 202

    [offered] = re.findall(r'<option value="([^"]+)" selected>', await shown(browser, webhook))
    await sent(
        browser,
        webhook,
        "/change",
        url=body["url"],
        connector_id=offered,
        description="changed",
        **{"type:job.failed": "on"},
    )
    kept = (await api.get(address)).document()
    await sent(browser, webhook, "/change", url=body["url"], connector_id="", **{"type:job.failed": "on"})

    assert (kept["connector_id"], kept["types"], kept["description"]) == (offered, ["job.failed"], "changed")
    assert offered == connector.record["id"]
    assert (await api.get(address)).document()["connector_id"] is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"url": "http://app.example.com"}, "https"),
        ({"type:job.failed": ""}, "types"),
        ({"connector_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, "no such connector"),
        ({"connector_id": "x"}, "connector_id"),
    ],
)
async def test_errors_of_a_webhook_stay_in_the_form_with_what_was_typed(browser, api, wrong, told):
    fields = {"url": "https://app.example.com/hooks", "description": "of jobs", "type:job.failed": "on", **wrong}
    fields = {name: value for name, value in fields.items() if value}

    answer = await browser.send(PAGE, csrf=await browser.csrf(), **fields)

    page = answer.body.decode()
    assert answer.status == 422
    assert told in page
    assert f'value="{fields["url"]}"' in page
    assert (await api.get("/api/v1/webhooks")).document()["data"] == []


async def form_of(browser):
    """What a browser sends from the page's form for another webhook, as it is."""
    [key] = re.findall(r'name="key" value="([\w-]+)"', (await browser.get(PAGE)).body.decode())
    return {"csrf": await browser.csrf(), "key": key, "type:job.failed": "on", "entity": "tickets"}


async def test_a_form_that_is_sent_twice_at_once_creates_one_webhook(browser, api, receiver):
    form = {**await form_of(browser), "url": f"{receiver.url}/once"}

    answers = await asyncio.gather(*(browser.send(PAGE, **form) for _ in range(2)))
    later = await browser.send(PAGE, **form)

    pages = [answer.body.decode() for answer in (*answers, later)]
    [webhook] = (await api.get("/api/v1/webhooks")).document()["data"]
    assert sorted(len(re.findall(r"whsec_[\w+/=]+", page)) for page in pages) == [0, 0, 1]
    assert sorted("The form has already created this webhook" in page for page in pages) == [False, True, True]
    assert [f'action="{PAGE}/{webhook["id"]}/rotate"' in page for page in pages] == [True] * 3


async def test_a_form_that_has_created_another_webhook_is_shown_again_with_a_new_key(browser, api, receiver):
    form = await form_of(browser)

    await browser.send(PAGE, **form, url=f"{receiver.url}/one")
    refused = await browser.send(PAGE, **form, url=f"{receiver.url}/two")
    [key] = re.findall(r'name="key" value="([\w-]+)"', refused.body.decode())
    made = await browser.send(PAGE, **{**form, "key": key}, url=f"{receiver.url}/two")

    assert (refused.status, made.status) == (422, 200)
    assert "this form has already created another webhook" in refused.body.decode()
    assert len((await api.get("/api/v1/webhooks")).document()["data"]) == 2
