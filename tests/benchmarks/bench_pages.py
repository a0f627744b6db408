"""First paint of every screen of the console and of the connect pages, on a processor four times as slow.

    python -m tests.benchmarks.bench_pages [--quick]

Each is loaded by a browser that has nothing stored, from a gateway with some connectors, jobs and calls; what the
browser's own clock says of its first contentful paint is the figure.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Browser, StorageState

from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.browser import launched, signed_in
from tests.harness.caller import Api
from tests.harness.up import brought_up

#: how much slower the processor is made, and milliseconds that a first paint may take on it
SLOWDOWN, AT_MOST_MS = 4, 1000.0
#: what the page is asked; a promise, for it may not be painted yet
_PAINT = """new Promise((resolve) => new PerformanceObserver((list) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint) resolve(paint.startTime);
}).observe({type: "paint", buffered: true}))"""
_JOBS = 20


@dataclass(frozen=True)
class Screen:
    """A page to load; the console's are those of somebody who is signed in."""

    name: str
    path: str
    is_console: bool = True


async def run(quick: bool = False) -> Report:
    """The first paint of each page against its limit."""
    rounds = 2 if quick else 5
    report = Report("First paint")
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        environment = {**os.environ, "GATEWAY_LOG_LEVEL": "error"}
        async with brought_up(Path(folder), environment, "--sandbox") as ready, launched() as browser:
            async with Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api:
                screens = await _prepared(api)
            state = await _signed_in(browser, ready)
            for screen in screens:
                times = [await _first_paint(browser, ready["base_url"], screen, state) for _ in range(rounds)]
                report.figures.append(_figure(screen, times))
    report.notes.append(f"processor slowed {SLOWDOWN} times, nothing stored in the browser; median of {rounds} loads")
    return report


def _figure(screen: Screen, times: Sequence[float]) -> Figure:
    return Figure(f"{screen.name}, against its limit", median(times), AT_MOST_MS, "ms", at_most=1)


async def _prepared(api: Api) -> list[Screen]:
    """The screens, after some work to show."""
    desk = await api.connector()
    for _ in range(_JOBS):
        job = await desk.submit("tickets", "list", {"per_page": 5})
    job_id = job["id"]
    await api.get(f"/api/v1/jobs/{job_id}/result?wait=60")
    links = [await _link(api), await _link(api, connector_types=["support-desk"])]
    return [
        Screen("console, sign-in", "/console/sign-in", is_console=False),
        Screen("console, overview", "/console"),
        Screen("console, connectors", "/console/connectors"),
        Screen("console, a connector", f"/console/connectors/{desk.record['id']}"),
        Screen("console, playground", "/console/playground?operation=support-desk.tickets.create"),
        Screen("console, jobs", "/console/jobs"),
        Screen("console, a job", f"/console/jobs/{job_id}"),
        Screen("console, search", "/console/search"),
        Screen("console, audit", "/console/audit"),
        Screen("console, people", "/console/people"),
        Screen("console, policies", "/console/policies"),
        Screen("console, budgets", "/console/budgets"),
        Screen("console, clients and apps", "/console/settings"),
        Screen("console, health", "/console/health"),
        Screen("connect page, choice", links[0], is_console=False),
        Screen("connect page, form", links[1], is_console=False),
    ]


async def _link(api: Api, **members: Any) -> str:
    answer = await api.post("/api/v1/connect/sessions", {"workspace_name": "w", **members})
    return str(answer.json()["url"])


async def _signed_in(browser: Browser, ready: dict[str, Any]) -> StorageState:
    """The cookies of somebody who is."""
    context = await browser.new_context(base_url=ready["base_url"])
    await signed_in(await context.new_page(), ready["client_id"], ready["client_secret"])
    state = await context.storage_state()
    await context.close()
    return state


async def _first_paint(browser: Browser, base_url: str, screen: Screen, state: StorageState) -> float:
    """Milliseconds from the navigation to the first contentful paint."""
    context = await browser.new_context(base_url=base_url, storage_state=state if screen.is_console else None)
    try:
        page = await context.new_page()
        devtools = await context.new_cdp_session(page)
        await devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        answer = await page.goto(screen.path)
        assert answer is not None
        assert answer.status == 200, screen
        return float(await page.evaluate(_PAINT))
    finally:
        await context.close()


if __name__ == "__main__":
    measured_alone(run, __doc__)
