"""The tenants of a cluster file, with the fields of a snapshot's."""

from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from synergy_core.model.snapshot import FieldError, Tenant, check_tenants
from synergy_core.model.snapshot_format import one_line
from synergy_simulator.inputs.errors import InputError, InputLocation

_TENANTS = TypeAdapter(tuple[Tenant, ...])


def read_tenants(file: str, node: yaml.Node | None) -> tuple[Tenant, ...]:
    """The tree that a node of the file has. Raises InputError that names the line of the list and the field."""
    if node is None:
        return ()
    where = InputLocation(file, node.start_mark.line + 1)
    try:
        tenants = _TENANTS.validate_python(_value(node), strict=False)
        check_tenants(tenants)
    except ValidationError as error:
        details = error.errors()[0]
        raise InputError(where, one_line({**details, "loc": ("tenants", *details["loc"])})) from None
    except FieldError as error:
        raise InputError(where, str(error)) from None
    return tenants


def _value(node: yaml.Node) -> Any:
    constructor = yaml.SafeLoader("")
    try:
        return _as_tuples(constructor.construct_object(node, deep=True))
    finally:
        constructor.dispose()


def _as_tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
