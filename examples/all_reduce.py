"""Averages vectors over the workers of a job through plain sockets: all send to rank 0, rank 0 sends the mean back."""

import os
import pickle
import socket
import struct
import time
from typing import Any

import numpy as np
from small_network import Floats

CONNECT_PATIENCE_S = 120.0
ANSWER_PATIENCE_S = 120.0
_DIGEST = 32


class DisagreementError(RuntimeError):
    """Two workers hold different weights."""


class AllReduce:
    """The workers of a job as torchrun's variables name them: WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT."""

    def __init__(self) -> None:
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self._peers: list[socket.socket] = []
        if self.world_size > 1:
            address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
            self._peers = self._listen(address[1]) if self.rank == 0 else [self._connect(address)]
            print(f"rank {self.rank} of {self.world_size}, rank 0 is {address[0]}:{address[1]}", flush=True)

    def mean(self, vector: Floats, digest: bytes) -> Floats:
        """The mean of all workers' vectors. Raises `DisagreementError` when their weights' digests differ."""
        if self.rank > 0:
            _send(self._peers[0], digest + vector.tobytes())
            return np.frombuffer(_receive(self._peers[0]), np.float32)
        total = vector.copy()
        for peer in self._peers:
            message = _receive(peer)
            if message[:_DIGEST] != digest:
                raise DisagreementError("a worker's weights are not those of rank 0")
            total += np.frombuffer(message[_DIGEST:], np.float32)
        total /= np.float32(self.world_size)
        for peer in self._peers:
            _send(peer, total.tobytes())
        return total

    def from_rank_0(self, content: Any) -> Any:
        """What rank 0 passes in, on every rank."""
        if self.rank > 0:
            return pickle.loads(_receive(self._peers[0]))  # noqa: S301 - from the job's own rank 0
        for peer in self._peers:
            _send(peer, pickle.dumps(content))
        return content

    def _listen(self, port: int) -> list[socket.socket]:
        with socket.create_server(("", port), backlog=self.world_size) as server:
            server.settimeout(CONNECT_PATIENCE_S)
            peers = [server.accept()[0] for _ in range(self.world_size - 1)]
        for peer in peers:
            _prepare(peer)
        return sorted(peers, key=lambda peer: int(_receive(peer)))

    def _connect(self, address: tuple[str, int]) -> socket.socket:
        deadline = time.monotonic() + CONNECT_PATIENCE_S
        while True:
            try:
                peer = socket.create_connection(address, timeout=5)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)  # rank 0, or its name, is not there yet
            else:
                _prepare(peer)
                _send(peer, str(self.rank).encode())
                return peer


def _prepare(peer: socket.socket) -> None:
    peer.settimeout(ANSWER_PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _send(peer: socket.socket, payload: bytes) -> None:
    peer.sendall(struct.pack("!I", len(payload)) + payload)


def _receive(peer: socket.socket) -> bytes:
    (length,) = struct.unpack("!I", _exactly(peer, 4))
    return _exactly(peer, length)


def _exactly(peer: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        data = peer.recv(count - len(received))
        if not data:
            raise ConnectionError("a worker of this job is gone")
        received += data
    return bytes(received)
