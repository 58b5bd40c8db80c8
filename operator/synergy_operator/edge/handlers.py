"""kopf's part: it runs the process, logs in, starts and stops the controller, and answers the liveness probe.

kopf watches nothing and writes nothing: no finalizers, no annotations, no peering, no events of its own. The
controller's reflectors follow the cluster, and the controller decides and acts.
"""

import asyncio
from typing import Any, Final

import kopf

from synergy_kube import KubeClient
from synergy_kube.steady_clock import SteadyClock
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.metrics import Metrics
from synergy_operator.edge.metrics_server import MetricsServer

_ERROR_BACKOFFS: Final = (0.2, 0.5, *(1.0 for _ in range(600)))
"""Delays between kopf's attempts to list the resource types at its start.

The API server may be unavailable for ten minutes before the process gives up and is restarted.
"""
_REQUEST_SECONDS: Final = 30.0


class Operator:
    """The running operator. `registry` has the handlers that kopf calls; `stopped` ends it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._client: KubeClient | None = None
        self._controller: Controller | None = None
        self._metrics = Metrics()
        self._metrics_server = MetricsServer(self._metrics, environment.metrics_port)
        self._task: asyncio.Task[None] | None = None
        self.stopped = asyncio.Event()
        self.registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self.registry)(_login)
        kopf.on.startup(registry=self.registry)(self._start)
        kopf.on.cleanup(registry=self.registry)(self._stop)
        kopf.on.probe(id="controller", registry=self.registry)(self._probe)

    async def serve(self) -> None:
        """Run until a signal arrives or something fails for good. Raises what failed."""
        await kopf.operator(
            registry=self.registry,
            # kopf derives a name from the user's, and the container's user has none
            identity="kube-synergy-operator",  # type: ignore[arg-type]  # a NewType of str that kopf does not export
            standalone=True,
            clusterwide=True,
            liveness_endpoint=f"http://0.0.0.0:{self._environment.health_port}/healthz",
            stop_flag=self.stopped,
        )
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.networking.request_timeout = _REQUEST_SECONDS
        settings.networking.error_backoffs = _ERROR_BACKOFFS
        await self._metrics_server.start()
        self._client = await KubeClient.connect()
        self._controller = Controller(self._client, self._environment, SteadyClock(), self._metrics)
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._controller.run(ready), name="controller")
        self._task.add_done_callback(lambda _: self.stopped.set())
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.is_set():
            waiting.cancel()
            raise kopf.PermanentError("the caches could not be filled")

    async def _stop(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._client is not None:
            await self._client.close()
        await self._metrics_server.stop()

    async def _probe(self, **_: Any) -> str:
        if self._controller is None or self._task is None or self._task.done():
            raise kopf.PermanentError("the controller does not run")
        if self._controller.stuck:
            raise kopf.PermanentError("work on a job does not end")
        return "ok"


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
