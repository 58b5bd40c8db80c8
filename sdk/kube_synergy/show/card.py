"""A job's status as a piece of HTML."""

from html import escape

from kube_synergy.status import JobStatus

_COLOURS = {"Succeeded": "#1a7f37", "Failed": "#cf222e", "Running": "#0969da", "Starting": "#0969da"}
_WAITS = "#9a6700"


def card(status: JobStatus) -> str:
    """Name, phase, reason, and a progress bar where the number of steps is known."""
    colour = _COLOURS.get(status.phase, _WAITS)
    gpus = f"{status.gpus_held} {status.gpu_type}" if status.gpus_held else f"wants {status.gpus}"
    rows = [
        f"<b>{escape(status.job)}</b> <b style='color:{colour}'>{escape(status.phase)}</b>",
        f"GPUs: {escape(gpus)}, run {status.run}",
    ]
    if status.steps:
        done = min(status.steps_done, status.steps)
        rows.append(f"<progress value='{done}' max='{status.steps}'></progress> step {done} of {status.steps}")
    if status.message or status.reason != status.phase:
        told = f"{status.reason}: {status.message}" if status.message else status.reason
        rows.append(f"<span>{escape(told)}</span>")
    return "<div style='line-height:1.5'>" + "<br>".join(rows) + "</div>"
