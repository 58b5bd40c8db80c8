"""The resources that kube-synergy reads and writes, as paths of the API server."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource type. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_path(self) -> str:
        """URL path of the group's version, where discovery answers."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, or of one object or its subresource.

        Raises ValueError for one object of a namespaced resource without its namespace.
        """
        if self.namespaced and name is not None and namespace is None:
            raise ValueError(f"{self.kind} {name} needs a namespace")
        parts = [self.group_path]
        if self.namespaced and namespace is not None:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        parts.extend(part for part in (name, subresource) if part is not None)
        return "/".join(parts)


PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
SECRETS: Final = Resource("", "v1", "secrets", "Secret", namespaced=True)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS: Final = Resource("", "v1", "events", "Event", namespaced=True)
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
SELF_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
TRAINING_JOBS: Final = Resource("kube-synergy.dev", "v1alpha1", "trainingjobs", "TrainingJob", namespaced=True)
GPU_POOLS: Final = Resource("kube-synergy.dev", "v1alpha1", "gpupools", "GPUPool", namespaced=False)
SCHEDULING_POLICIES: Final = Resource(
    "kube-synergy.dev", "v1alpha1", "schedulingpolicies", "SchedulingPolicy", namespaced=False
)
THROUGHPUT_PROFILES: Final = Resource(
    "kube-synergy.dev", "v1alpha1", "throughputprofiles", "ThroughputProfile", namespaced=False
)
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
POD_TEMPLATES: Final = Resource("", "v1", "podtemplates", "PodTemplate", namespaced=True)
PROVISIONING_REQUESTS: Final = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", namespaced=True
)
TENANTS: Final = Resource("kube-synergy.dev", "v1alpha1", "tenants", "Tenant", namespaced=False)
