"""The operating system processes under test, kept running as a Deployment would."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

_AGAIN_SECONDS = 1.0


class Program:
    """One process that can be killed and paused. While `kept` it is started again when it ends by itself.

    `ended` counts the times it did; its output is appended to `log`.
    """

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self.ended: list[int] = []
        self._argv = list(argv)
        self._env = {**os.environ, **env}
        self._process: asyncio.subprocess.Process | None = None
        self._kept = False
        self._keeper: asyncio.Task[None] | None = None

    def variant(self, arguments: Sequence[str], env: Mapping[str, str]) -> "Program":
        """The same interpreter with other arguments and more environment, not started; it writes to the same log."""
        return Program(self.name, [self._argv[0], *arguments], {**self._env, **env}, self.log)

    @property
    def pid(self) -> int:
        """Its process, running or ended; 0 before the first start."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Start it, and keep it running."""
        if self._process is not None and self._process.returncode is None:
            return
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv, env=self._env, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self._kept = True
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def kill(self) -> None:
        """SIGKILL to it and the processes it started, as the end of its container would be; it stays down."""
        self._kept = False
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    def pause(self) -> None:
        """SIGSTOP to it and the processes it started."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    async def stop(self) -> None:
        """End it for good."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            os.killpg(self._process.pid, number)

    async def _keep(self) -> None:
        while True:
            assert self._process is not None
            process = self._process
            code = await process.wait()
            if self._kept and process is self._process:
                self.ended.append(code)
                await asyncio.sleep(_AGAIN_SECONDS)
                if self._kept:
                    await self.start()
            else:
                await asyncio.sleep(_AGAIN_SECONDS / 4)
