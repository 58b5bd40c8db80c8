"""The page works with a keyboard, a screen reader and a narrow window."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import support.dashboard
from integration.dashboard_page.conftest import Served, until
from support.dashboard.demo import Demo, realistic

AXE = Path(support.dashboard.__file__).parent / "axe" / "axe.min.js"
PAGES = ("cluster", "queue", "rounds", "job", "waiting job", "tenants", "what-if", "policy", "sign-in")
Visit = Callable[..., Page]


@pytest.fixture
def still(serve: Callable[[Demo], Served]) -> Served:
    """Nothing changes while axe looks."""
    return serve(Demo(realistic(), changes=0))


def opened(served: Served, visit: Visit, name: str, *, dark: bool = False, width: int = 1280) -> Page:
    """A page with its data and its folds open."""
    world = served.demo.world
    if name == "sign-in":
        served.demo.token = "s3cret"
        served.allowed = {"401"}
    job = {"job": next(iter(world.jobs)), "waiting job": next(iter(world.queue))}.get(name)
    page = visit(served, f"#/job/{job}" if job else f"#/{name}", dark=dark, width=width)
    until(page, "document.querySelector('h1') !== null && document.querySelector('.bones:not([hidden])') === null")
    if name == "what-if":
        page.get_by_role("button", name="Try it").click()
        page.get_by_role("table", name="Jobs in both futures").wait_for()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.wait_for_timeout(300)
    return page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(still: Served, visit: Visit, name: str, dark: bool) -> None:
    page = opened(still, visit, name, dark=dark)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [
        f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary'][:300]}"
        for one in found["violations"]
        if one["impact"] in ("moderate", "serious", "critical")
    ]
    assert told == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_narrow_window(still: Served, visit: Visit, name: str) -> None:
    page = opened(still, visit, name, width=420)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_the_queue_says_why_in_a_narrow_window(still: Served, visit: Visit) -> None:
    page = opened(still, visit, "queue", width=420)
    reason = page.get_by_role("row").first.locator("[data-label='Waits because']")
    expect(reason).to_be_in_viewport(ratio=1)


def test_a_row_and_the_skip_link_work_with_the_keyboard(still: Served, visit: Visit) -> None:
    page = visit(still, "#/queue")
    page.get_by_role("table").wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    link = page.locator("tbody th a").first
    name = link.inner_text()
    link.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_the_switch_of_colours_stays(still: Served, visit: Visit) -> None:
    page = visit(still)
    page.get_by_role("button", name="Use dark colours").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_job_has_one_colour_on_all_pages(still: Served, visit: Visit) -> None:
    page = visit(still, "#/queue")
    link = page.locator("tbody th a").first
    color = link.locator(".swatch").evaluate("(one) => one.style.getPropertyValue('--swatch')")
    link.click()
    expect(page.locator("h1 .swatch")).to_be_visible()
    assert page.locator("h1 .swatch").evaluate("(one) => one.style.getPropertyValue('--swatch')") == color
