"""The CPU counts at which a job may be profiled (Synergy, section 3.1)."""


def cpu_grid(*, ceiling_millis: int, step_millis: int, floor_millis: int = 0) -> tuple[int, ...]:
    """CPU points in milli-CPU, ascending: the multiples of the step from the floor up, and the ceiling.

    Raises ValueError when the ceiling or step is below 1, or the floor is above the ceiling.
    """
    if step_millis < 1:
        raise ValueError(f"step_millis must be at least 1, is {step_millis}")
    if ceiling_millis < 1:
        raise ValueError(f"ceiling_millis must be at least 1, is {ceiling_millis}")
    if floor_millis > ceiling_millis:
        raise ValueError(f"floor_millis {floor_millis} is above ceiling_millis {ceiling_millis}; lower the floor")
    first = max(1, -(-floor_millis // step_millis)) * step_millis
    return (*range(first, ceiling_millis, step_millis), ceiling_millis)
