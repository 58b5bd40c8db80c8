"""What the simulator needs to run the past again: trace, profiles and cluster, as a zip file."""

from synergy_dashboard.facts import History
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_kube import KubeClient


async def archive(live: LiveCluster, store: History, client: KubeClient, scope: Scope, since_s: float) -> bytes:
    """The zip file."""
    raise NotImplementedError
