"""One cache for all training processes of a pod (torchrun starts one for each GPU): the first makes it and hands it on.

The processes have no common parent that knows of the cache, and a pod may have no writable folder; so the descriptor
goes through a socket in Linux's abstract namespace, to processes of the same user only.
"""

from __future__ import annotations

import array
import contextlib
import hashlib
import os
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from synergy_job.cache.layout import CacheError
from synergy_job.cache.store import Store
from synergy_job.environment import read_integer
from synergy_job.forking import undivided
from synergy_job.wire import close_in_children

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 60.0
"""How long a process waits for the first one of its pod to make the cache."""
_RETRY_S = 0.05
_PEER = struct.Struct("=iII")


def pods_store(name: str, make: Callable[[], Store], environ: Mapping[str, str]) -> Store:
    """The cache `name` of this pod: made here, or by the first training process of the pod and handed over.

    Raises `CacheError` where that process does not make one of this name within a minute.
    """
    processes = read_integer(environ, "LOCAL_WORLD_SIZE", 1)
    address = _address(name, environ)
    if read_integer(environ, "LOCAL_RANK", 0) > 0:
        return _fetch(address, name)
    store = make()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CacheError(f"there is a cache {name!r} in this pod already: give each data set a name") from error
    listener.listen(processes)
    close_in_children(listener)
    serving = threading.Thread(target=_serve, args=(listener, store, processes - 1), name="synergy-cache", daemon=True)
    serving.start()
    return store


def _address(name: str, environ: Mapping[str, str]) -> str:
    keys = ("SYNERGY_NAMESPACE", "SYNERGY_JOB", "SYNERGY_RUN", "PET_NODE_RANK", "MASTER_PORT")
    parts = "/".join([*(environ.get(key, "") for key in keys), name])
    # a socket's name has room for about a hundred characters; those of a job and its namespace may fill it
    with undivided:
        return "\0kube-synergy-cache/" + hashlib.sha256(parts.encode()).hexdigest()


def _serve(listener: socket.socket, store: Store, waiting: int) -> None:
    with listener:
        while waiting > 0:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):  # who asked is gone
                if not _is_ours(connection):
                    continue
                handed = array.array("i", [store.fileno()])
                connection.sendmsg([b"c"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
                waiting -= 1


def _is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is of this process's user."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return bool(_PEER.unpack(peer)[1] == os.getuid())


def _fetch(address: str, name: str) -> Store:
    deadline = time.monotonic() + WAIT_S
    while True:
        descriptor = _ask(address)
        if descriptor is not None:
            return Store.adopt(descriptor)
        if time.monotonic() > deadline:
            raise CacheError(
                f"local rank 0 made no cache {name!r} within {WAIT_S:.0f} s: every rank must make the same caches"
            )
        time.sleep(_RETRY_S)


def _ask(address: str) -> int | None:
    handed = array.array("i")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(WAIT_S)
            connection.connect(address)
            if not _is_ours(connection):
                raise CacheError("another user's process answers where local rank 0 should hand over its cache")
            _, control, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(handed.itemsize), socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return None
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            handed.frombytes(data[: handed.itemsize])
            return handed[0]
    return None
