"""The workers of a Dask cluster, on any number of machines."""

import pickle
import queue
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from synergy_simulator.runners.code import SameCode, code
from synergy_simulator.runners.errors import LostError, PlaceError
from synergy_simulator.runners.runner import Found, Item

CONNECT_S: Final = 20.0
PATIENCE_S: Final = 60.0
"""For so long a cluster may have no worker, at the beginning and whenever it loses all."""
_LOOK_S: Final = 1.0
_TOOLS: Final = ("python", "dask", "distributed", "cloudpickle")
"""What client, scheduler and workers talk by."""
_ALONE: Final = threading.Lock()
"""Of a worker: a simulation has its process for itself, however many threads the worker has."""


class DaskCluster:
    """Runs simulations on the workers of the cluster with the scheduler at an address."""

    def __init__(self, client: Any, address: str, patience_s: float) -> None:
        """Made by `connected`."""
        self._client = client
        self._address = address
        self._patience_s = patience_s

    @property
    def workers(self) -> Mapping[str, int]:
        """Address and threads of each worker. Raises LostError where the scheduler is gone."""
        if self._client.status != "running":
            raise self._gone()
        try:
            threads: Mapping[str, int] = self._client.nthreads()
        except (OSError, RuntimeError, TypeError):
            raise self._gone() from None
        return threads

    def patient(self, seconds: float) -> "DaskCluster":
        """The same cluster, which may have no worker for so long."""
        return DaskCluster(self._client, self._address, seconds)

    def run(
        self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
    ) -> list[Found]:
        """See `Runner`. Few items at a time are at the scheduler: what is left is quickly cancelled, and workers that
        come later get their part."""
        checked = SameCode(function, code())
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        left, sent, found = iter(enumerate(items)), dict[Any, int](), dict[int, Found]()
        try:
            while len(found) < len(items):
                for index, item in self._next(left, len(sent)):
                    future = self._submitted(checked, item)
                    sent[future] = index
                    future.add_done_callback(ended.put)
                future = self._wait(ended)
                index = sent.pop(future)
                found[index] = self._answer(future, items[index].label)
                future.release()
                done(index, found[index])
        except BaseException:
            with suppress(Exception):
                self._client.cancel(list(sent), force=True)
            raise
        return [found[index] for index in range(len(items))]

    def _next(self, left: Iterator[tuple[int, Item]], sent: int) -> Iterator[tuple[int, Item]]:
        """Items until each thread of the cluster has one, and a further one to go on with."""
        for _ in range(max(1, 2 * sum(self.workers.values())) - sent):
            try:
                yield next(left)
            except StopIteration:
                return

    def _submitted(self, checked: SameCode[Item, Found], item: Item) -> Any:
        """The scheduler passes the bytes on as they are. The key is new each time: nobody else's answer is taken."""
        return self._client.submit(_call, pickle.dumps((checked, item)), key=f"{item.label} {uuid.uuid4().hex}")

    def _wait(self, ended: "queue.SimpleQueue[Any]") -> Any:
        """The next future that has ended. Raises LostError where none will."""
        look = self._looker()
        while True:
            try:
                return ended.get(timeout=_LOOK_S)
            except queue.Empty:
                look()

    def _answer(self, future: Any, label: str) -> Any:
        """What it found. A worker may have ended before it passed that on: then another one finds it again."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415  an extra

        look = self._looker()
        while True:
            try:
                return future.result(timeout=_LOOK_S)
            except TimeoutError:
                if future.status == "error":  # it is what the function raised
                    raise
                look()
            except KilledWorker as error:
                worker = getattr(error.last_worker, "address", error.last_worker)
                raise LostError(
                    f"{error.allowed_failures + 1} workers ended while they had {label!r}, the last one {worker}; "
                    "look at its log: most often a worker needs more memory"
                ) from None
            except CancelledError:
                raise self._gone() from None

    def _looker(self) -> Callable[[], None]:
        """A look at the cluster, which raises LostError after too long a time without workers."""
        since = time.monotonic()

        def look() -> None:
            nonlocal since
            if self.workers:
                since = time.monotonic()
            elif time.monotonic() - since > self._patience_s:
                raise LostError(
                    f"{self._address} has had no worker for {self._patience_s:.0f} s; look at the workers' logs, "
                    "start some, and begin again"
                )

        return look

    def _gone(self) -> LostError:
        return LostError(f"the scheduler at {self._address} ended, or the network to it; start it and begin again")


@contextmanager
def connected(address: str, *, patience_s: float = PATIENCE_S) -> Iterator[DaskCluster]:
    """The cluster, for as long as it is needed.

    Raises:
        PlaceError: `distributed` is not installed, nothing answers at the address, there is no worker for
            `patience_s`, or scheduler or workers have other code than this process.
    """
    client = _client(address)
    try:
        _check_tools(client)
        _check_workers(client, address, patience_s)
        yield DaskCluster(client, address, patience_s)
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT_S)


def _client(address: str) -> Any:
    try:
        from distributed import Client  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise PlaceError(f"needs {error.name}: install kube-synergy[dask]") from None
    try:
        with warnings.catch_warnings():  # of versions: `_check_tools` says it in one line
            warnings.simplefilter("ignore")
            return Client(address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise PlaceError(
            f"{address}: no Dask scheduler answers ({why}); give its address, such as tcp://HOST:8786, "
            "start it with `dask scheduler`, and let this machine through firewalls"
        ) from None


def _check_tools(client: Any) -> None:
    """The versions by which the parts of a cluster talk."""
    told = client.get_versions(check=False)
    mine = told["client"]["packages"]
    others = {"the scheduler": told["scheduler"], **{f"worker {name}": one for name, one in told["workers"].items()}}
    for name, other in others.items():
        theirs = (other or {}).get("packages", {})
        differences = [
            f"{tool} {theirs.get(tool, 'missing')} instead of {mine[tool]}"
            for tool in _TOOLS
            if theirs.get(tool) != mine[tool]
        ]
        if differences:
            raise _other(name, ", ".join(differences))


def _check_workers(client: Any, address: str, patience_s: float) -> None:
    """What the scheduler and the workers compute with. A worker that comes later is asked with its first item."""
    try:
        client.wait_for_workers(1, timeout=patience_s)
    except TimeoutError:
        raise PlaceError(
            f"{address} has no workers; start some with `dask worker {address} --nworkers=auto --nthreads=1`"
        ) from None
    answers = client.run(code, on_error="return")
    for name, answer in {
        "the scheduler": _from_scheduler(client),
        **{f"worker {name}": one for name, one in answers.items()},
    }.items():
        if isinstance(answer, Exception) and "No module named" in str(answer):  # of whatever type Dask makes it
            raise _other(name, "no kube-synergy, or another one")
        if isinstance(answer, Exception):
            raise PlaceError(f"{name}: {answer}")
        differences = code().against(answer)
        if differences:
            raise _other(name, differences)


def _from_scheduler(client: Any) -> Any:
    """The scheduler reads the names of functions too."""
    try:
        return client.run_on_scheduler(code)
    except Exception as error:  # noqa: BLE001  whatever it is, it is told as that of a worker
        return error


def _other(name: str, differences: str) -> PlaceError:
    return PlaceError(
        f"{name} has {differences}; install the same kube-synergy[dask] there, or run this in the same image, and "
        "start scheduler and workers anew"
    )


def _call(content: bytes) -> object:
    """On a worker: what is in the bytes."""
    function, item = pickle.loads(content)  # noqa: S301  from the client, as all that a Dask worker runs
    with _ALONE:
        return function(item)
