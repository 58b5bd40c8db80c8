"""The leader's running counts of GPU-hours: what was last counted for each tenant, and what it has used since."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from synergy_api.cluster.nodes import Object
from synergy_api.resources.tenant_status import GpuHours
from synergy_api.timestamps import parse_time
from synergy_extender.tenants.gpu_hours import counted
from synergy_extender.tenants.uses import TenantUse

_LOG = logging.getLogger(__name__)


@dataclass
class _Meter:
    hours: GpuHours | None = None
    used: Mapping[str, int] = field(default_factory=dict)


class UseMeters:
    """Begins with what stands in the Tenants' status, and goes on from there."""

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}

    def forget(self) -> None:
        """Begin anew: another leader may have counted meanwhile."""
        self._meters.clear()

    def count(self, objects: Iterable[Object], uses: Mapping[str, TenantUse], now: float) -> dict[str, GpuHours | None]:
        """The GPU-hours of each Tenant until `now`, and from now on count what it uses now."""
        meters = {}
        for item in objects:
            name = str(item["metadata"]["name"])
            meter = self._meters.get(name) or _read(name, item.get("status") or {})
            use = uses.get(name, TenantUse())
            meter.hours = counted(meter.hours, meter.used, now) or counted(None, use.used, now)
            meter.used = use.used
            meters[name] = meter
        self._meters = meters
        return {name: meter.hours for name, meter in meters.items()}


def _read(name: str, status: Mapping[str, Any]) -> _Meter:
    """What an earlier leader has left. What does not parse is counted anew: it is of an older or newer version."""
    if not status.get("gpuHours"):
        return _Meter()
    try:
        hours = GpuHours.model_validate(status["gpuHours"], extra="ignore")
        parse_time(hours.counted_until)
    except (ValidationError, ValueError) as error:
        _LOG.warning("the GPU-hours of Tenant %s are counted anew: %s", name, error)
        return _Meter()
    used = status.get("used") or {}
    return _Meter(hours, {str(kind): int(gpus) for kind, gpus in used.items()})
