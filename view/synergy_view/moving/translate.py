"""Objects of Kueue, Volcano and KAI as Tenants, with a remark about each line that is lost or changed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.resources.tenant import TenantSpec
from synergy_view.moving import kai, kueue, volcano
from synergy_view.moving.words import Choices, Draft, Object, Remark

_LONGEST_NAME: Final = 63


@dataclass(frozen=True)
class Translation:
    """Tenants, each with the remarks about its source, and remarks about objects that make no Tenant."""

    tenants: tuple[tuple[Object, tuple[Remark, ...]], ...]
    others: tuple[Remark, ...] = ()


def translate(objects: Iterable[Object], choices: Choices) -> Translation:
    """The Tenants. Raises ValueError naming the object that cannot be read, or the choice that is missing."""
    by_group: dict[str, list[Object]] = {}
    for item in objects:
        by_group.setdefault(_group(item), []).append(item)
    others: list[Remark] = []
    drafts: list[Draft] = []
    found = kueue.Kueue(by_group.pop(kueue.GROUP, []), choices)
    drafts += found.drafts()
    others += found.remarks()
    for module in (volcano, kai):
        listed = by_group.pop(module.GROUP, [])
        drafts += module.drafts([item for item in listed if item["kind"] == "Queue"], choices)
        by_group.setdefault(module.GROUP, []).extend(item for item in listed if item["kind"] != "Queue")
    for rest in by_group.values():
        others += [Remark(f"{item['kind']} {item['metadata']['name']}", "", "is not translated") for item in rest]
    return Translation(tuple(_finished(draft) for draft in drafts if _fits(draft, others)), tuple(others))


def _group(item: Any) -> str:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict) or not item.get("kind") or not metadata.get("name"):
        raise ValueError("an object without kind or metadata.name; give Kubernetes manifests")
    if not isinstance(item.get("spec") or {}, dict):
        raise ValueError(f"{item['kind']} {metadata['name']}: spec: must be an object")
    return str(item.get("apiVersion", "")).partition("/")[0]


def _fits(draft: Draft, others: list[Remark]) -> bool:
    """Whether a Tenant can have the name. If not, what was to be said of it is said without one."""
    if len(draft.name) <= _LONGEST_NAME:
        return True
    others += [*draft.remarks, Remark(draft.source, "metadata.name", f"a Tenant's name has {_LONGEST_NAME} characters "
                                      "at the most: rename it")]  # fmt: skip
    return False


def _finished(draft: Draft) -> tuple[Object, tuple[Remark, ...]]:
    for gpu_type, gpus in draft.spec.get("guarantee", {}).items():
        limit = draft.gpus("limit", gpu_type)
        if limit is not None and gpus > limit:
            draft.remark("", f"the guarantee of {gpus} {gpu_type} is above the limit and lowered to {limit}")
            draft.spec["guarantee"] = {**draft.spec["guarantee"], gpu_type: limit}
    try:
        TenantSpec.model_validate(draft.spec)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{draft.source}: the Tenant's spec.{path}: {first['msg']}") from error
    return draft.manifest(), tuple(draft.remarks)
