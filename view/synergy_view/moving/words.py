"""What all translations share: fields that are read once, GPU types, and the Tenants that are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from synergy_api.names import API_VERSION, RESOURCE_GPU
from synergy_api.quantity import parse_quantity

Object = dict[str, Any]
UNTYPED: Final = ""
"""The name under which `Choices.types` has the GPU type of queues that know none."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person has to know of one line of the input: `source` is the object, `path` its field."""

    source: str
    path: str
    message: str


@dataclass(frozen=True)
class Choices:
    """What the input cannot say: the GPU type of each flavor (`UNTYPED`: of all), and the namespaces of each queue."""

    types: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Remarked(Protocol):
    """Something that is being translated, of which remarks are made."""

    def remark(self, path: str, message: str) -> None:
        """Say something of a field of the source."""


@dataclass
class Draft:
    """A Tenant that is being made of one object."""

    name: str
    source: str
    spec: dict[str, Any] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def remark(self, path: str, message: str) -> None:
        """Say something of a field of the source."""
        self.remarks.append(Remark(self.source, path, message))

    def amount(self, value: Any, path: str) -> float:
        """A quantity as a number. Raises ValueError if it is none."""
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError(f"{value!r} is no quantity")
            return float(parse_quantity(value))
        except ValueError as error:
            raise ValueError(f"{self.source}: {path}: {error}") from None

    def set_gpus(self, place: str, gpu_type: str, gpus: int) -> None:
        """GPUs of a type in one of the Tenant's maps, added to those that are there."""
        amounts = self.spec.setdefault(place, {})
        amounts[gpu_type] = amounts.get(gpu_type, 0) + gpus

    def gpus(self, place: str, gpu_type: str) -> int | None:
        """What one of the Tenant's maps says of the type."""
        found: int | None = self.spec.get(place, {}).get(gpu_type)
        return found

    def set_weight(self, value: Any, path: str) -> None:
        """The weight, as far as a Tenant can have it."""
        weight = self.amount(value, path)
        if weight <= 0:
            self.remark(path, "a Tenant's weight is above zero; it has weight 0.001, the least of all")
            weight = 0.001
        if weight != 1:
            self.spec["weight"] = weight

    def set_namespaces(self, names: Iterable[str], *, link: str) -> None:
        """The namespaces whose jobs count for the Tenant; `link` says how jobs named the queue before."""
        listed = sorted(set(names))
        if listed:
            self.spec["namespaces"] = listed
        else:
            self.remark("", f"{link}: add spec.namespaces, or name them with --namespace {self.name}=NAMESPACE")

    def manifest(self) -> Object:
        """The Tenant."""
        return {"apiVersion": API_VERSION, "kind": "Tenant", "metadata": {"name": self.name}, "spec": self.spec}


class Fields:
    """The fields of one object. Each is read once; what nobody reads has no counterpart."""

    def __init__(self, given: Any, path: str, source: str) -> None:
        if not isinstance(given, Mapping):
            raise ValueError(f"{source}: {path}: must be an object")
        self._left = dict(given)
        self._path = path
        self._source = source

    def take(self, name: str, default: Any = None) -> Any:
        """The value of a field."""
        return self._left.pop(name, default)

    def within(self, name: str) -> "Fields":
        """The fields of a field; none if it is absent."""
        return Fields(self._left.pop(name, None) or {}, f"{self._path}.{name}", self._source)

    def each(self, name: str) -> list["Fields"]:
        """The objects of a list."""
        listed = self._left.pop(name, None) or []
        if not isinstance(listed, list):
            raise ValueError(f"{self._source}: {self._path}.{name}: must be a list")
        return [Fields(one, f"{self._path}.{name}[{index}]", self._source) for index, one in enumerate(listed)]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that nobody has read."""
        return tuple(self._left)

    def path(self, name: str) -> str:
        """The path of a field."""
        return f"{self._path}.{name}"

    def tell_rest(self, draft: Remarked, known: Mapping[str, str], usual: Mapping[str, Any] | None = None) -> None:
        """A remark about each field that was not read: what is known of it, else that it has no counterpart. Nothing is
        said of a value that is `usual`: an API server has written it, and kube-synergy does the same."""
        for name, value in self._left.items():
            if value not in (None, {}, [], (usual or {}).get(name)):
                draft.remark(self.path(name), known.get(name, "has no counterpart"))


def whole_gpus(value: Any, draft: Draft, path: str) -> int:
    """GPUs of a quantity, without the fraction."""
    gpus = draft.amount(value, path)
    if gpus != int(gpus):
        draft.remark(path, f"{gpus:g} GPUs are counted as {int(gpus)}: a Tenant has whole GPUs")
    return int(gpus)


def gpu_type_of_all(choices: Choices, draft: Draft, path: str) -> str:
    """The GPU type of a queue that knows none."""
    gpu_type = choices.types.get(UNTYPED, "")
    if not gpu_type:
        raise ValueError(f"{draft.source}: {path} says no GPU type, and a Tenant needs one; give --gpu-type TYPE")
    return gpu_type


def resources(given: Fields, draft: Draft) -> Any:
    """The GPUs of a list of resources; a remark about each other resource."""
    gpus = given.take(RESOURCE_GPU)
    given.tell_rest(draft, dict.fromkeys(("cpu", "memory", "pods"), NOT_GPUS))
    return gpus


NOT_GPUS: Final = "a Tenant counts GPUs: CPU and memory go by the plan; a ResourceQuota in the namespace can limit them"
