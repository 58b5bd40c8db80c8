"""Which reference jobs a reconcile sees: the others of its namespace, as they are now."""

from dataclasses import replace

from support.operator.objects import job_manifest
from synergy_operator.edge.caches.references import ReferenceJobs
from synergy_operator.views.job import JobView, read_job

USAGE = {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memory": "2Gi", "model": "Net"}


def _job(name: str, *, reference: bool = True) -> JobView:
    return read_job(job_manifest(name, sharing={"allowed": True, "reference": reference, "usage": [USAGE]}))


def test_references_come_and_go_with_what_the_jobs_say() -> None:
    jobs = ReferenceJobs()
    b, a, plain = _job("b"), _job("a"), _job("plain", reference=False)
    for job in (b, a, plain):
        jobs.update(job.key, job)
    assert jobs.beside(("team", "new")) == (a, b)
    assert jobs.beside(a.key) == (b,), "no job is its own reference"
    assert jobs.beside(("other", "new")) == ()
    jobs.update(a.key, _job("a", reference=False))
    assert jobs.beside(("team", "new")) == (b,)
    jobs.update(b.key, replace(b, deleting=True))
    assert jobs.beside(("team", "new")) == ()
    jobs.update(b.key, b)
    jobs.update(b.key, None)
    jobs.update(b.key, None)
    assert jobs.beside(("team", "new")) == ()
