"""A program that owns a run with one pod, for tests that kill it."""

import asyncio
import sys
from pathlib import Path

from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.machine import machine


async def main(root: Path, kind: Kind, nap: str) -> None:
    run = run_directories.create(root)
    async with machine(run.directory, root, kind=kind) as pods:
        # One of its processes has its own session, and all ignore signals.
        script = f"trap '' TERM HUP INT; setsid sleep {nap} & sleep {nap} & sleep {nap}; wait"
        await pods.create("p", "sh", "-c", script)
        await pods.until_phase("p", "Running")
        print(run.directory, flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Kind(sys.argv[2]), sys.argv[3]))
