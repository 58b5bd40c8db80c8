"""What all-reduce training loses on many nodes: bytes per step against the measured bandwidth of the link.

In a parameter server the largest tensor blocks one server (Tiresias, section 3.3). All-reduce splits all tensors into
buckets of equal size and sends each link the same bytes, so skew says nothing. A ring over n nodes sends 2 (n - 1) / n
times the gradients' bytes over each node's link in a step (Patarasuk and Yuan, JPDC 2009). Most of it is sent while the
backward pass still computes, which takes about two thirds of a step. For a job whose profile run has measured that
part, it counts instead.
"""

OVERLAP = 2.0 / 3.0
"""Part of a step during which gradients are sent for nothing, where it was not measured."""


def spread_speed(
    step_bytes: int, steps_per_s: float, link_bytes_per_s: float, nodes: int, overlap: float | None = None
) -> float:
    """Speed on `nodes` nodes as part of that on one, where the link is free; 1 where the step hides it all.

    `steps_per_s` is the speed on one node. A spread job may get as many nodes as it has GPUs, and plans assume that it
    does: on many nodes a link carries up to twice what it carries on two. Raises ValueError where a
    speed or the number of nodes makes no sense.
    """
    if not steps_per_s > 0.0 or not link_bytes_per_s > 0.0 or nodes < 1:
        raise ValueError("speeds must be above 0, and nodes at least 1")
    step_s, hidden = 1.0 / steps_per_s, OVERLAP if overlap is None else overlap
    sending_s = 2.0 * (nodes - 1) / nodes * step_bytes / link_bytes_per_s
    return step_s / (step_s + max(0.0, sending_s - hidden * step_s))
