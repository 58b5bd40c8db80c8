"""Command lines and configuration of the control plane: etcd, API server, controllers, scheduler, DNS, proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from synergy_devcluster import network
from synergy_devcluster.control_plane.kubeconfigs import write as write_kubeconfig
from synergy_devcluster.control_plane.pki import Authority, KeyPair, signing_key
from synergy_devcluster.paths import Paths
from synergy_devcluster.real_nodes import REAL_NODE, RealNode

ETCD_URL = "http://127.0.0.1:2379"
Argv = list[str]


@dataclass(frozen=True)
class Identities:
    """The certificates and kubeconfigs that the components start with."""

    authority: Authority
    api_server: KeyPair
    kubelet_server: KeyPair
    kubelet_client: KeyPair
    front_proxy: KeyPair
    kwok_server: KeyPair
    service_accounts: KeyPair
    kubeconfigs: Mapping[str, Path]


_USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
    "proxy": ("system:kube-proxy", None),
    "dns": ("system:coredns", None),
    "kwok": ("kwok", "system:masters"),
}


def make_identities(paths: Paths, nodes: Sequence[RealNode]) -> Identities:
    """Make the cluster's CA and everything it signs, for these real nodes."""
    authority = Authority(paths.pki)
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    api_names = [*names, "localhost", "127.0.0.1", network.NODE_ADDRESS, network.API_SERVICE_ADDRESS]
    users = _USERS | {f"kubelet{node.suffix}": (f"system:node:{node.name}", "system:nodes") for node in nodes}
    kubelet_names = [name for node in nodes for name in (node.name, node.address)]
    kubeconfigs = {
        name: write_kubeconfig(paths.config / f"{name}.kubeconfig", authority, authority.client(name, user, group))
        for name, (user, group) in users.items()
    }
    return Identities(
        authority=authority,
        api_server=authority.server("apiserver", api_names),
        kubelet_server=authority.server("kubelet-server", kubelet_names),
        kubelet_client=authority.client("apiserver-kubelet", "kube-apiserver-kubelet-client", "system:masters"),
        front_proxy=authority.client("front-proxy", "front-proxy-client"),
        kwok_server=authority.server("kwok-server", ["kwok", network.NODE_ADDRESS]),
        service_accounts=signing_key(paths.pki, "service-accounts"),
        kubeconfigs=kubeconfigs,
    )


def etcd(program: str, paths: Paths) -> Argv:
    """A single member on loopback. Without fsync: the data need to outlive processes, not the machine."""
    return [
        program,
        "--name=devcluster",
        f"--data-dir={paths.state / 'etcd'}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=2147483648",
        "--log-level=warn",
    ]


def _audit_policy() -> dict[str, object]:
    """What the pods' service accounts ask of the API server and who gives and takes their rights, without the bodies;
    nothing of the cluster's own."""
    bindings = {"group": "rbac.authorization.k8s.io", "resources": ["clusterrolebindings", "rolebindings"]}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
            {
                "level": "Metadata",
                "userGroups": ["system:masters"],
                "verbs": ["create", "update", "patch", "delete"],
                "resources": [bindings],
            },
            {"level": "None"},
        ],
    }


def api_server(program: str, ids: Identities, paths: Paths) -> Argv:
    """Listens on every address for pods and loopback alike; the firewall table keeps others out."""
    policy = paths.config / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_audit_policy()), encoding="utf-8")
    return [
        program,
        f"--etcd-servers={ETCD_URL}",
        "--bind-address=0.0.0.0",
        "--secure-port=6443",
        f"--advertise-address={network.NODE_ADDRESS}",
        f"--service-cluster-ip-range={network.SERVICE_RANGE}",
        f"--client-ca-file={ids.authority.certificate}",
        f"--tls-cert-file={ids.api_server.certificate}",
        f"--tls-private-key-file={ids.api_server.key}",
        f"--kubelet-certificate-authority={ids.authority.certificate}",
        f"--kubelet-client-certificate={ids.kubelet_client.certificate}",
        f"--kubelet-client-key={ids.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={ids.service_accounts.certificate}",
        f"--service-account-signing-key-file={ids.service_accounts.key}",
        f"--requestheader-client-ca-file={ids.authority.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={ids.front_proxy.certificate}",
        f"--proxy-client-key-file={ids.front_proxy.key}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--anonymous-auth=true",
        "--profiling=false",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={paths.audit_log}",
        "--audit-log-mode=batch",
        "--audit-log-maxsize=200",
        "--audit-log-maxbackup=1",
    ]


def controller_manager(program: str, ids: Identities, *, grace_s: int) -> Argv:
    """All default controllers, with a client rate that does not slow a small machine down. A node is lost `grace_s`
    seconds after its last lease."""
    kubeconfig = ids.kubeconfigs["controller-manager"]
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={ids.service_accounts.key}",
        f"--root-ca-file={ids.authority.certificate}",
        f"--cluster-signing-cert-file={ids.authority.certificate}",
        f"--cluster-signing-key-file={ids.authority.key}",
        f"--service-cluster-ip-range={network.SERVICE_RANGE}",
        f"--cluster-cidr={network.POD_RANGE}",
        "--allocate-node-cidrs=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--pvclaimbinder-sync-period=1s",
        f"--node-monitor-grace-period={grace_s}s",
    ]


def scheduler(program: str, ids: Identities) -> Argv:
    """The default scheduler, unchanged but for its client rate."""
    kubeconfig = ids.kubeconfigs["scheduler"]
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def coredns(program: str, ids: Identities, paths: Paths) -> Argv:
    """Cluster names only: there is no forwarding, so no question leaves the machine."""
    corefile = paths.config / "Corefile"
    corefile.write_text(
        f""".:53 {{
    bind {network.NODE_ADDRESS}
    errors
    health 127.0.0.1:10254
    ready 127.0.0.1:10255
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {ids.kubeconfigs["dns"]}
        pods insecure
        ttl 2
    }}
    cache 2
}}
""",
        encoding="utf-8",
    )
    return [program, "-conf", str(corefile)]


def kube_proxy(program: str, ids: Identities, paths: Paths) -> Argv:
    """iptables mode; node ports on loopback and the bridge only; connection tracking limits left alone."""
    config = paths.config / "kube-proxy.yaml"
    content = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(ids.kubeconfigs["proxy"])},
        "mode": "iptables",
        "clusterCIDR": network.POD_RANGE,
        "hostnameOverride": REAL_NODE,
        "bindAddress": "127.0.0.1",
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": ["127.0.0.0/8", network.POD_RANGE],
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"minSyncPeriod": "200ms"},
    }
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return [program, f"--config={config}"]
