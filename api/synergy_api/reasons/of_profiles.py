"""How measuring a job goes."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_P: Final = (ReasonPlace.PROFILED,)
_SHORTFALL: Final = (ReasonPlace.PROFILED, ReasonPlace.RUNNING, ReasonPlace.LAST_RUN)

PROFILES: Final[dict[Reason, Entry]] = {
    Reason.PROFILE_SKIPPED: Entry(
        _P, "profile.mode is Skip: the job gets the GPU-proportional share of CPU and memory"
    ),
    Reason.PROFILE_PROVIDED: Entry(_P, "the matrices of spec.profile are used"),
    Reason.PROFILE_KNOWN: Entry(_P, "ThroughputProfile {name}, measured by an identical job, is used", event="Normal"),
    Reason.PROFILE_MEASURED: Entry(_P, "{points} CPU points were measured on {gpu_types}", event="Normal"),
    Reason.PROFILE_UNCERTAIN: Entry(
        _P,
        "the speeds on {gpu_type} are known to {uncertainty} only, after {runs} profile runs",
        "raise spec.profile.steps: the job is measured anew, longer; for all jobs to come, raise runsPerPoint and "
        "maxRepeats of the SchedulingPolicy's profiling; or use profile.mode Provided or Skip",
        "The job's speed differs from step to step or from run to run. The job is queued with what was measured, but "
        "the plan may give it too much or too little.",
        "Warning",
    ),
    Reason.PROFILE_MEMORY_OFF: Entry(
        _P,
        "with less memory on {gpu_type} the job's speed is {error} off what the memory model says",
        "correct spec.dataset, spec.batchSize or the GPUPool's storageBandwidth; status.profile.points has both speeds",
        "The model computes the speed with a part of the data in the cache from the size of the data and the bandwidth "
        "of storage. The job is queued with it anyway.",
        "Warning",
    ),
    Reason.PROFILE_MEMORY_UNCHECKED: Entry(
        _P,
        "a profile run with less memory on {gpu_type} failed: the effect of memory on speed is estimated, not measured",
        "raise spec.profile.timeoutSeconds where storage is slow; correct spec.dataset, or the script where it fails "
        "without all of its data in memory",
        "With less memory than the data set a job waits for storage. The job is queued anyway, with the memory "
        "model's speeds for what was not measured.",
        "Warning",
    ),
    Reason.USAGE_UNDERSTATED: Entry(
        _P,
        "on {gpu_type} a profile run took {measured} of GPU memory, and spec.sharing.usage says {told}",
        "correct spec.sharing.usage, or leave it out: plans go by what was measured",
        "On a shared GPU a job that takes more than it says would fail under the device plugin's limit. The plan "
        "counts the larger figure, so the job shares where that fits.",
        "Warning",
    ),
    Reason.USAGE_WITHOUT_COUNTERS: Entry(
        _P,
        "{points} CPU points were measured on {gpu_types}; compute and bandwidth on {gpu_type} are utilisation, an "
        "upper bound: {problem}",
        "let profile runs read dcgm-exporter's profiling fields (operator.dcgmExporter of the chart); or use "
        "spec.profile.counters Nsight with an image that has Nsight Compute",
        "The job may share its GPU, and no GPU counters told how busy it keeps the multiprocessors and the memory. "
        "Utilisation is the part of the time in which any kernel runs, however small. The plan takes it for the job's "
        "load, so it may miss partners that would fit.",
        event="Normal",
    ),
    Reason.PROFILE_SHARED: Entry(
        (ReasonPlace.PROFILED, ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "the identical TrainingJob {job} is measured first, its profile will be used",
        event="Normal",
    ),
    Reason.PROFILE_WAITING: Entry(
        _P,
        "a profile run asks for {gpus} of type {gpu_type} to measure the job, after {points} points so far",
        event="Normal",
    ),
    Reason.PROFILE_MEASURING: Entry(
        (ReasonPlace.PROFILED, ReasonPlace.RUNNING),
        "run {run} measures with {cpu} CPU on {gpu_type}, after {points} points so far",
    ),
    Reason.PAIR_WAITING: Entry(
        _P,
        "a profile run asks for a shared GPU of type {gpu_type} to run the job beside reference job {reference}, after "
        "{pairs} pairs so far",
        "wait; or lower referencePairs or referenceWaitSeconds in the SchedulingPolicy's profiling",
        "The job's matrices are measured. It is queued for training once it was measured beside its references, or "
        "after referenceWaitSeconds.",
        "Normal",
    ),
    Reason.PAIR_MEASURING: Entry(
        (ReasonPlace.PROFILED, ReasonPlace.RUNNING),
        "run {run} measures the job beside reference job {reference} on a shared GPU of type {gpu_type}, after {pairs} "
        "pairs so far",
    ),
    Reason.PAIR_NEEDS_SHARED_GPU: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "run {run} got a GPU of node {node} that is not shared: nothing was measured beside a reference job",
        "let the GPUPool say how the node's device plugin shares GPUs",
        event="Normal",
    ),
    Reason.POINT_MEASURED: Entry(
        (ReasonPlace.EVENT,),
        "{speed} steps/s with {cpu} CPU on {gpu_type}",
        event="Normal",
    ),
    Reason.IMAGE_CHANGED: Entry(
        (ReasonPlace.PROFILED, ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "the image's name stands for {new} by now, measured was {old}; the job is measured anew before its next run",
        event="Normal",
    ),
    Reason.SPEEDS_ESTIMATED: Entry(
        (ReasonPlace.SPEEDS,),
        "estimated from other jobs, in steps/s: {speeds}",
        means="The job may run on GPU types that it has no matrix for: on those that its spec.gpuTypes names, or on "
        "any where the SchedulingPolicy's spec.estimate is all. It is placed there by what a job that is like it "
        "gains on them, and has its whole GPU-proportional share there. Once it has run on a type, what was measured "
        "stands in place of the estimate.",
    ),
    Reason.ESTIMATES_CHECKED: Entry(
        (ReasonPlace.SPEEDS,), "measured where it was estimated before, in steps/s: {speeds}", event="Normal"
    ),
    Reason.ESTIMATE_OFF: Entry(
        (ReasonPlace.SPEEDS,),
        "measured where it was estimated before, in steps/s: {speeds}",
        means="An estimate was more than 25 % off, and is not yet less than 15 % off. Plans go by the measured "
        "throughput now; until then they may have had the job on a GPU type that others gain more from.",
        event="Warning",
    ),
    Reason.NO_NODE_TO_PROFILE: Entry(
        _P,
        "no node of an allowed GPU type ({wanted}) takes pods now",
        "uncordon or add one, or use profile.mode Provided or Skip",
        event="Warning",
    ),
    Reason.PROFILE_CRASHED: Entry(
        _SHORTFALL,
        "profile run {job} with {cpu} CPU: {problem}",
        "run the command by hand, its log is in the pod of that Job",
        "The command ended with an error before enough steps were measured.",
        "Warning",
    ),
    Reason.PROFILE_NO_STEPS: Entry(
        _SHORTFALL,
        "profile run {job} with {cpu} CPU: {problem}",
        "the training loop must go through synergy_job.iterate, or spec.throughput.regex say how it prints its steps",
        "The command ran, but the harness saw no training step of it.",
        "Warning",
    ),
    Reason.PROFILE_TIMEOUT: Entry(
        _SHORTFALL,
        "profile run {job} with {cpu} CPU: {problem}",
        "raise spec.profile.timeoutSeconds or lower spec.profile.steps; a command that hangs must be run by hand",
        "The command was still running when the time for a profile run was over.",
        "Warning",
    ),
    Reason.PROFILE_TOO_NOISY: Entry(
        _SHORTFALL,
        "profile run {job} with {cpu} CPU: {problem}",
        "raise spec.profile.steps or spec.profile.warmupSteps",
        "The steps took so different times that their mean says nothing.",
        "Warning",
    ),
    Reason.PROFILE_BAD_COMMAND: Entry(
        _SHORTFALL,
        "profile run {job}: {problem}",
        "correct spec.template.spec.containers[0].command",
        "The command could not be started at all.",
        "Warning",
    ),
    Reason.PROFILE_OUT_OF_MEMORY: Entry(
        _SHORTFALL,
        "profile run {job} was killed for memory at {memory}",
        "raise spec.resources.max.memory, or make the job smaller",
        event="Warning",
    ),
    Reason.PROFILE_NO_RESULT: Entry(
        _SHORTFALL,
        "profile run {job} with {cpu} CPU ended without a result ({problem})",
        "the image needs python3, and nothing else may write /dev/termination-log",
        "The harness could not run, or something overwrote what it had to say.",
        "Warning",
    ),
    Reason.SERIES_ENDED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "run {run}: the profile runs on {gpu_type} are done",
        event="Normal",
    ),
    Reason.SPEC_CHANGED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "run {run}: the spec or the nodes have changed, the job is measured anew",
        event="Normal",
    ),
    Reason.PROFILE_POD_MISSING: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "run {run}: no pod was made for profile run {job} within {seconds} s",
        "raise the ResourceQuota or LimitRange that refuses it, or lower spec.resources.max; `kubectl describe job "
        "{job}` says which",
        "The profile run's Kubernetes Job is there, but its pod was refused.",
        "Warning",
    ),
    Reason.PROFILE_JOB_CHANGED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN),
        "run {run}: the annotations of Job {job} have been changed, they no longer say what it measured",
        "let only the operator write the annotations of profile Jobs",
        "Its result does not count. The run counts as failed, and the next one measures the point again. A pair of "
        "jobs is set aside, and counts as no failure.",
        "Warning",
    ),
    Reason.PROFILE_FAILED: Entry(
        (ReasonPlace.FINISHED,),
        "the job could not be measured",
        "the condition Profiled says why; correct that, or use profile.mode Provided or Skip in a new job",
        event="Warning",
    ),
}
