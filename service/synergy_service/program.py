"""Start and end of a program: settings, logs, event loop, signals, and the parts that run side by side."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

import uvloop

from synergy_service.logs import configure
from synergy_service.nesting import admit_deep_objects
from synergy_service.servers import Servers
from synergy_service.settings import ConfigError

LEAVING_SECONDS: Final = 2.0
"""Between not ready and closed: until Kubernetes has noticed, the Service still sends requests to this replica."""


class ProgramSettings(Protocol):
    """The common part of all programs' settings."""

    @property
    def log_level(self) -> str:
        """One of `settings.LOG_LEVELS`."""


AnySettings = TypeVar("AnySettings", bound=ProgramSettings)


def run_program(
    read_settings: Callable[[], AnySettings],
    serve: Callable[[AnySettings], Coroutine[Any, Any, None]],
    unusable: tuple[type[Exception], ...],
) -> int:
    """Run `serve` to its end. The exit code: 0, or 2 after a ConfigError or an exception of a type in `unusable`."""
    try:
        settings = read_settings()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    configure(settings.log_level)
    admit_deep_objects()
    try:
        uvloop.run(serve(settings))
    except unusable as error:
        logging.getLogger(__name__).error("cannot start: %s", error)
        return 2
    return 0


def call_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` when SIGTERM or SIGINT arrives."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


async def run_parts(
    parts: Mapping[str, Coroutine[Any, Any, None]],
    servers: Servers,
    stopping: asyncio.Event,
    leave: Callable[[], Awaitable[None]] | None = None,
    leaving_s: float = LEAVING_SECONDS,
) -> None:
    """Run the named parts and the servers until `stopping` is set. Then await `leave`, close the servers after
    `leaving_s`, and cancel the parts. An error of one part ends all of them and is raised."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(part, name=name) for name, part in parts.items()]
        serving = group.create_task(servers.run(), name="servers")
        await stopping.wait()
        if leave is not None:
            await leave()
        await asyncio.sleep(leaving_s)
        servers.stop()
        await serving
        for part in running:
            part.cancel()
