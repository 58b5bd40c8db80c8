"""`python -m support.dashboard.pictures [FOLDER]`: the dashboard's pictures in docs/images, of a made-up cluster."""

import sys
import threading
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from support.dashboard.demo import Demo, realistic

FOLDER = Path(__file__).parents[3] / "docs" / "images"
WHAT_IF = "what-if?add=A100%3A2&drain=t4-000&name=resnet&namespace=vision&gpus=4&types=A100"


def pictures(demo: Demo) -> dict[str, tuple[str, int, bool]]:
    """Address, width and darkness by the file's name."""
    job = next(name for name, row in demo.world.jobs.items() if row.nodes > 1)
    return {
        "cluster": ("cluster", 1280, False),
        "cluster-dark": ("cluster", 1280, True),
        "cluster-narrow": ("cluster", 420, False),
        "queue": ("queue", 1280, False),
        "rounds": ("rounds", 1280, False),
        "job": (f"job/{job}", 1280, False),
        "tenants": ("tenants", 1280, False),
        "what-if": (WHAT_IF, 1280, False),
    }


def take(browser: Browser, url: str, file: Path, *, width: int, dark: bool) -> None:
    """One picture, once its charts are drawn."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    page.goto(url)
    page.wait_for_timeout(3000)
    if "what-if" in url:
        page.get_by_role("button", name="Try it").click()
        page.get_by_role("table", name="Both futures in sum").wait_for()
        page.wait_for_timeout(500)
    page.screenshot(path=file)
    context.close()


def main(folder: Path) -> None:
    """Take all of them."""
    demo = Demo(realistic(), changes=0)
    server = uvicorn.Server(uvicorn.Config(demo.app(), port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, (address, width, dark) in pictures(demo).items():
            file = folder / f"dashboard-{name}.png"
            take(browser, f"http://127.0.0.1:{port}/#/{address}", file, width=width, dark=dark)
        browser.close()
    server.should_exit = True


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
