"""The page in a browser (Debian's chromium), on answers about a made-up cluster."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from support import needed
from support.dashboard.demo import Demo, realistic


def until(page: Page, condition: str, seconds: float = 15) -> None:
    """Wait until an expression is true in the page. Playwright's own way evaluates a string, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        page.wait_for_timeout(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a module: a test that runs an event loop in the same process cannot run while it is open."""
    path = needed.chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Served:
    """A server and what its page must not do."""

    demo: Demo
    url: str
    server: uvicorn.Server
    thread: threading.Thread
    allowed: set[str] = field(default_factory=set)
    """Parts of console errors that a test expects."""

    def stop(self) -> None:
        """End it, open streams too."""
        self.demo.broken = True
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture
def serve() -> Iterator[Callable[[Demo], Served]]:
    """Start servers that end with the test."""
    running: list[Served] = []

    def start(demo: Demo) -> Served:
        config = uvicorn.Config(
            demo.app(), port=0, log_level="warning", ws="none", lifespan="off", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.02)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        running.append(Served(demo, f"http://127.0.0.1:{port}/", server, thread))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def served(serve: Callable[[Demo], Served]) -> Served:
    """40 nodes; a change every half second while `changes` are to come."""
    return serve(Demo(realistic(), every_s=0.5, changes=0))


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address of a server: `visit(served, "#/queue", width=420, dark=True)`.

    The test fails if a page wrote an error to the console or asked another host.
    """
    problems: list[tuple[Served, str]] = []
    contexts = []

    def open_page(served: Served, address: str = "", *, width: int = 1280, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", timezone_id="UTC"
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()

        def said(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                problems.append((served, message.text))

        def asked(request: Request) -> None:
            if not request.url.startswith((served.url, "data:", "blob:")):
                problems.append((served, f"asked {request.url}"))

        page.on("console", said)
        page.on("pageerror", lambda error: problems.append((served, str(error))))
        page.on("request", asked)
        page.goto(served.url + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    unexpected = [text for served, text in problems if not any(part in text for part in served.allowed)]
    assert unexpected == []
