"""What translations of jobs rely on in a manifest that no API server has checked: objects, lists and texts are there
where Kubernetes has them. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_LISTS: Final = ("containers", "initContainers")


def check_shape(item: Mapping[str, Any], source: str) -> None:
    """Raises ValueError naming the object and the field that is of another kind than in Kubernetes."""
    problem = next(_problems(item), "")
    if problem:
        raise ValueError(f"{source}: {problem}")


def _problems(item: Mapping[str, Any]) -> Iterator[str]:
    yield from _metadata(item.get("metadata"), "metadata")
    yield from _objects(_get(item, "metadata", "ownerReferences"), "metadata.ownerReferences")
    yield from _object(item.get("status"), "status")
    yield from _objects(_get(item, "status", "conditions"), "status.conditions")
    words = {
        "status.phase": _get(item, "status", "phase"),
        "status.state.phase": _get(item, "status", "state", "phase"),
    }
    for index, one in enumerate(_get(item, "status", "conditions") or []):
        words |= {f"status.conditions[{index}].{name}": one.get(name) for name in ("type", "status")}
    yield from (f"{path}: must be a text" for path, word in words.items() if not isinstance(word, str | None))
    spec = item.get("spec")
    if item.get("kind") == "Pod":
        yield from _pod(spec, "spec")
    else:
        yield from _templates(spec, "spec")


def _templates(given: Any, path: str) -> Iterator[str]:
    """Of all pod templates below a field."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name == "template":
                yield from _template(value, f"{path}.template")
            else:
                yield from _templates(value, f"{path}.{name}")
    elif isinstance(given, list):
        for index, value in enumerate(given):
            yield from _templates(value, f"{path}[{index}]")


def _template(given: Any, path: str) -> Iterator[str]:
    yield from _object(given, path)
    if isinstance(given, Mapping):
        yield from _metadata(given.get("metadata"), f"{path}.metadata")
        yield from _pod(given.get("spec"), f"{path}.spec")


def _pod(given: Any, path: str) -> Iterator[str]:
    yield from _object(given, path)
    if isinstance(given, Mapping):
        yield from _texts(given.get("nodeSelector"), f"{path}.nodeSelector")
        for part in _LISTS:
            yield from _objects(given.get(part), f"{path}.{part}")
            for index, container in enumerate(given.get(part) or []):
                yield from _resources(container.get("resources"), f"{path}.{part}[{index}].resources")


def _resources(given: Any, path: str) -> Iterator[str]:
    yield from _object(given, path)
    for part in ("requests", "limits"):
        yield from _object(_get(given, part), f"{path}.{part}")
        for name, amount in (_get(given, part) or {}).items():
            if not isinstance(name, str) or isinstance(amount, bool) or not isinstance(amount, str | int | float):
                yield f"{path}.{part}: {name!r}: {amount!r} is no quantity"


def _metadata(given: Any, path: str) -> Iterator[str]:
    yield from _object(given, path)
    for part in ("labels", "annotations"):
        yield from _texts(_get(given, part), f"{path}.{part}")


def _texts(given: Any, path: str) -> Iterator[str]:
    yield from _object(given, path)
    for name, value in (given or {}).items():
        if not isinstance(name, str) or not isinstance(value, str | None):
            yield f"{path}: {name!r}: {value!r} must be a text: write it in quotes"


def _object(given: Any, path: str) -> Iterator[str]:
    if not isinstance(given, Mapping | None):
        yield f"{path}: must be an object"


def _objects(given: Any, path: str) -> Iterator[str]:
    if not isinstance(given, list | None) or any(not isinstance(one, Mapping) for one in given or []):
        yield f"{path}: must be a list of objects"


def _get(given: Any, *path: str) -> Any:
    for name in path:
        given = given.get(name) if isinstance(given, Mapping) else None
    return given
