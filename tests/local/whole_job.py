"""A program that runs one MPI job and prints what its ranks said."""

import asyncio
import sys
from pathlib import Path

from mpi_operator.local import mpi, runs
from mpi_operator.local.sandbox.protocol import Kind
from tests.local import mpi_job
from tests.local.machine import machine


async def main(home: Path, kind: Kind, implementation: str) -> None:
    (home / "ranks.py").write_text(mpi_job.PROGRAM)
    run = runs.create(home / "runs")
    tools = mpi.find(implementation).tools
    async with machine(run.directory, home, kind=kind, tools=lambda pod: tools) as pods:
        await mpi_job.start(pods, implementation, 2, "mpirun", "-n", "2", "python", "ranks.py")
        status = await pods.end_of("pi-launcher-x")
        print(mpi_job.why(status))
        for line in mpi_job.ranks(await pods.output("pi-launcher-x")):
            print(line)
    run.end()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Kind(sys.argv[2]), sys.argv[3]))
