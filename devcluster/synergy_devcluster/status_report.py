"""What a devcluster is doing: its components, its nodes, and whether its network is shut to the outside."""

from dataclasses import asdict, dataclass
from typing import Any

from synergy_devcluster import network
from synergy_devcluster.cluster import node_ready
from synergy_devcluster.control_plane.api import Api
from synergy_devcluster.control_plane.components import Component
from synergy_devcluster.paths import Paths
from synergy_devcluster.state import StateFile


@dataclass(frozen=True)
class ComponentStatus:
    """One component; its last log lines only when it is down."""

    name: str
    alive: bool
    pid: int | None
    last_log_lines: list[str]


@dataclass(frozen=True)
class Status:
    """The devcluster as it is now; ``phase`` is None when there is none."""

    phase: str | None
    components: list[ComponentStatus]
    nodes: int
    nodes_ready: int
    network_problems: list[str]
    options: str | None
    kubeconfig: str | None
    logs: str | None

    @property
    def healthy(self) -> bool:
        """Whether it is up, whole, with every node Ready and nothing able to leave the machine."""
        whole = self.phase == "running" and all(component.alive for component in self.components)
        return whole and self.nodes > 0 and self.nodes == self.nodes_ready and not self.network_problems

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        return {"healthy": self.healthy, **asdict(self)}


def status(paths: Paths | None = None) -> Status:
    """Look at the devcluster of this machine."""
    places = paths or Paths.of()
    file = StateFile.of(places)
    state = file.load()
    if state is None or not state.this_boot():
        return Status(None, [], 0, 0, [], None, None, None)
    listed = [_component(Component(name, file)) for name in state.components]
    nodes = _nodes(places)
    return Status(
        phase=state.phase if state.phase != "running" or state.usable() else "broken",
        components=listed,
        nodes=len(nodes),
        nodes_ready=sum(node_ready(item) for item in nodes),
        network_problems=network.broken_rules(state.firewall),
        options=state.options.in_words(),
        kubeconfig=str(places.kubeconfig),
        logs=str(places.logs),
    )


def _component(component: Component) -> ComponentStatus:
    alive = component.alive()
    process = component.process
    last = [] if alive else component.log_tail()
    return ComponentStatus(component.name, alive, process.pid if process else None, last)


def _nodes(paths: Paths) -> list[dict[str, Any]]:
    try:
        with Api(paths.pki) as api:
            items: list[dict[str, Any]] = api.get("/api/v1/nodes")["items"]
    except Exception:  # noqa: BLE001  a status of a broken cluster has to be told too
        return []
    return items
