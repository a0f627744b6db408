"""Webhooks in the console: deliveries, and the forms of the page."""

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
