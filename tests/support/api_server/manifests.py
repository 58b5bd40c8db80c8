"""Manifests of every custom resource, small and with every optional field, as a user would write them."""

import copy
from typing import Any

Manifest = dict[str, Any]

CONTAINER: Manifest = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"]}
MATRIX: Manifest = {
    "gpuType": "V100",
    "cpuMillis": [3000, 12000],
    "memoryBytes": [2**33, 2**36],
    "stepsPerSecond": [[1, 1.5], [1.9, 2.4]],
    "clientThreadPercent": 50,
}
POINT: Manifest = {
    "gpuType": "V100",
    "cpuMillis": 3000,
    "memoryBytes": 2**36,
    "stepsPerSecond": 1.5,
    "relativeError": 0.01,
    "lowStepsPerSecond": 1.4,
    "highStepsPerSecond": 1.6,
    "hitRate": 0.5,
    "storageBytesPerSecond": 2**27,
    "predictedStepsPerSecond": 1.55,
    "maxRssBytes": 2**30,
    "cached": True,
    "largestTensorBytes": 2**20,
    "modelBytes": 2**22,
    "gpuCompute": 0.6,
    "gpuBandwidth": 0.4,
    "gpuMemoryBytes": 2**33,
    "gpuSource": "DCGM",
    "gpuUtilization": 0.9,
    "gpuMemoryUtilization": 0.5,
    "gpuOccupancy": 0.3,
    "gpuProblem": "said by a test",
    "clientThreadPercent": 50,
    "epochSteps": 5004,
    "runs": [{"stepsPerSecond": 1.5, "relativeError": 0.01, "job": "job-1-p3000"}],
    "job": "job-1-p3000",
    "measuredAt": "2026-11-21T10:00:00Z",
}
CONFIDENCE: Manifest = {
    "gpuType": "V100",
    "level": "Fair",
    "uncertainty": 0.07,
    "runs": 3,
    "runToRun": 0.02,
    "memoryError": 0.04,
    "memoryPoints": 1,
    "storageBytesPerSecond": 2**27,
}
TRAFFIC: Manifest = {
    "source": "NCCL",
    "workers": 4,
    "bytesPerStep": 3 * 2**23,
    "modelBytes": 2**24,
    "sendingSeconds": 0.2,
    "messageBytes": 2**24,
    "largestMessageBytes": 2**22,
    "overlap": 0.5,
}
REFERENCE_PAIR: Manifest = {
    "gpuType": "V100",
    "model": "Net",
    "ownModel": "Other",
    "reference": "ref",
    "kept": 0.8,
    "referenceKept": 0.9,
    "usage": {
        "gpuType": "V100",
        "compute": 0.6,
        "bandwidth": 0.4,
        "memory": "3Gi",
        "model": "Net",
        "configuration": "CIFAR-10 64",
        "source": "Counters",
        "utilization": 0.9,
        "memoryUtilization": 0.5,
    },
    "seconds": 60.5,
    "gpuSeconds": 80.5,
    "problem": "said by a test",
    "measuredAt": "2026-11-21T10:00:00Z",
}
CONDITION: Manifest = {
    "type": "Ready",
    "status": "True",
    "reason": "Tested",
    "message": "said by a test",
    "lastTransitionTime": "2026-11-21T10:00:00Z",
    "observedGeneration": 1,
}

SMALL_JOB: Manifest = {
    "metadata": {"name": "small"},
    "spec": {"gpus": 1, "steps": 10, "suspend": True, "template": {"spec": {"containers": [CONTAINER]}}},
}
FULL_JOB: Manifest = {
    "metadata": {"name": "full"},
    "spec": {
        "gpus": 8,
        "gpusPerWorker": 4,
        "template": {
            "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "kept"}},
            "spec": {
                "nodeSelector": {"zone": "a"},
                "containers": [
                    {**CONTAINER, "args": ["--fast"], "env": [{"name": "A", "value": "1"}]},
                    {"name": "side", "image": "example/side:1"},
                ],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        },
        "gpuTypes": ["V100", "T4"],
        "steps": 100_000,
        "batchSize": 256,
        "tenant": "vision",
        "after": [{"job": "prepare", "until": "Succeeded"}, {"job": "sweep", "until": "Finished"}],
        "weight": 2.5,
        "priorityClassName": "production",
        "slo": {"deadline": "2027-01-01T00:00:00Z"},
        "resources": {"min": {"cpu": "500m", "memory": "1Gi"}, "max": {"cpu": 24, "memory": "1e12"}},
        "dataset": {"bytes": 2**40, "samples": 1_281_167},
        "profile": {
            "mode": "Provided",
            "matrices": [MATRIX, {**MATRIX, "gpuType": "T4"}],
            "steps": 100,
            "warmupSteps": 0,
            "timeoutSeconds": 900,
            "cpuStep": "1500m",
            "counters": "Nsight",
        },
        "sharing": {
            "allowed": True,
            "acrossTenants": True,
            "reference": True,
            "minThroughputFraction": 0.6,
            "usage": [
                {
                    "gpuType": "V100",
                    "compute": 0.3,
                    "bandwidth": 0.2,
                    "memory": "3Gi",
                    "source": "Counters",
                    "utilization": 0.8,
                    "memoryUtilization": 0.4,
                    "model": "ResNet18",
                    "configuration": "CIFAR-10 64",
                }
            ],
        },
        "preemption": "Signal",
        "placement": "Consolidate",
        "suspend": True,
        "managedBy": "kube-synergy.dev/operator",
        "array": {"count": 1000, "maxParallel": 10},
        "throughput": {"regex": r"step (?P<step>\d+)"},
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": 0,
    },
}
SMALL_POOL: Manifest = {
    "metadata": {"name": "test-small"},
    "spec": {"gpuType": "V100", "nodeSelector": {"test/none": "true"}},
}
FULL_POOL: Manifest = {
    "metadata": {"name": "test-full"},
    "spec": {
        "nodeSelector": {"test/none": "true"},
        "gpuType": "A100",
        "pricePerHour": 2.48,
        "storageBandwidth": 2**30,
        "systemReserved": {"cpu": 0, "memory": "2Gi"},
        "sharing": {"mode": "MPS", "replicas": 4, "preference": "Packed"},
        "devices": {"backend": "Plugin", "resource": "example.com/gpu"},
        "topology": ["test/block", "test/rack"],
        "topologyBandwidth": {"test/rack": 25_000_000_000},
        "maintenance": [{"start": "2026-12-01T22:00:00Z", "end": "2026-12-02T04:00:00Z"}],
        "autoscaling": {
            "maxNodes": 16,
            "node": {"gpus": 8, "cpu": "94", "memory": "1100Gi"},
            "taints": [{"key": "test/spot", "value": "yes", "effect": "NoExecute"}],
            "provisioningClass": "check-capacity.autoscaling.x-k8s.io",
            "waitSeconds": 0,
            "provisionSeconds": 120,
            "timeoutSeconds": 120,
            "idleSeconds": 60,
        },
    },
}
SMALL_POLICY: Manifest = {"metadata": {"name": "test-small"}, "spec": {}}
FULL_POLICY: Manifest = {
    "metadata": {"name": "test-full"},
    "spec": {
        "failingNodes": {
            "jobs": 2,
            "withinSeconds": 7200,
            "retrySeconds": 600,
            "probeSeconds": 60,
            "maxPercent": 20,
        },
        "policy": "hierarchical",
        "agnostic": True,
        "placementSensitive": True,
        "estimate": "all",
        "tenants": [{"name": "vision", "weight": 2.5, "policy": "fifo"}],
        "mechanism": "proportional",
        "colocation": "auto",
        "roundSeconds": 20,
        "queues": {"thresholdsGPUSeconds": [3600, 36000.5], "learnThresholds": True, "promoteKnob": 4},
        "placement": {"packLimitPercent": 30, "learnPackLimit": True, "linkBytesPerSecond": 1.25e9},
        "preemption": {"minimumRunSeconds": 60, "payback": 2.5, "maxCheckpointSeconds": 900, "maxPerHour": 3},
        "priorities": {"across": True},
        "autoscaling": {"maxPricePerHour": 250.5},
        "profiling": {
            "maxGpuPercent": 100,
            "maxCpuMultiple": 2,
            "maxPoints": 6,
            "thresholdPercent": 5,
            "runsPerPoint": 2,
            "maxRepeats": 8,
            "referencePairs": 4,
            "referencePairSeconds": 60,
            "referenceWaitSeconds": 300,
            "precisionPercent": 5,
            "demandTolerancePercent": 10,
            "checkMemoryModel": False,
            "maxSweepPoints": 24,
            "maxGpuTypes": 2,
        },
    },
}
SMALL_PROFILE: Manifest = {
    "metadata": {"name": "test-small"},
    "spec": {
        "fingerprint": "0123456789abcdef",
        "image": "example/train:1",
        "gpus": 1,
        "matrices": [MATRIX],
        "measuredAt": "2026-11-21T10:00:00Z",
    },
}
FULL_PROFILE: Manifest = {
    "metadata": {"name": "test-full"},
    "spec": {
        **SMALL_PROFILE["spec"],
        "imageDigest": "sha256:0123",
        "command": ["python3", "train.py"],
        "batchSize": 64,
        "points": [POINT],
        "confidence": [CONFIDENCE],
        "usage": [
            {
                "gpuType": "V100",
                "compute": 0.6,
                "bandwidth": 0.4,
                "memoryBytes": 2**33,
                "source": "DCGM",
                "utilization": 0.9,
                "memoryUtilization": 0.5,
                "occupancy": 0.3,
                "problem": "said by a test",
            }
        ],
        "traffic": TRAFFIC,
        "pairs": [REFERENCE_PAIR],
    },
}


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """A copy of `manifest` in which the field at `path` (dots, list indices as numbers) is `value`; None removes it."""
    result = copy.deepcopy(manifest)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    node: Any = result
    for part in parents:
        node = node.setdefault(part, {}) if isinstance(part, str) else node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return result


SMALL_TENANT: Manifest = {"metadata": {"name": "small"}, "spec": {}}

FULL_TENANT: Manifest = {
    "metadata": {"name": "full"},
    "spec": {
        "namespaces": ["red", "green"],
        "namespaceSelector": {
            "matchLabels": {"team": "vision"},
            "matchExpressions": [{"key": "stage", "operator": "In", "values": ["dev", "prod"]}],
        },
        "default": True,
        "weight": 2.5,
        "parent": "organisation",
        "guarantee": {"V100": 8},
        "limit": {"V100": 16, "T4": 0},
        "borrowing": {"V100": 4},
        "lending": {"V100": 2},
        "caps": {
            "maxWeight": 10.5,
            "maxNeverPreemptedGPUs": 16,
            "deadlines": "Allowed",
            "maxPriority": 500,
            "maxPreemptionsPerHour": 20,
        },
    },
}
