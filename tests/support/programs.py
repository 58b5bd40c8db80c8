"""Running the cluster's own programs, such as kubectl and helm, from a test."""

import asyncio

from synergy_devcluster import Cluster


async def attempt(cluster: Cluster, program: str, *arguments: str, text_in: str = "") -> tuple[int, str, str]:
    """Run a program as the cluster's administrator; its exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        cluster.program(program),
        f"--kubeconfig={cluster.kubeconfig}",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate(text_in.encode())
    return process.returncode or 0, output.decode(), errors.decode()


async def run(cluster: Cluster, program: str, *arguments: str, text_in: str = "") -> str:
    """Run a program that must succeed; its output."""
    code, output, errors = await attempt(cluster, program, *arguments, text_in=text_in)
    assert code == 0, errors
    return output
