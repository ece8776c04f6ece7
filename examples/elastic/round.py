"""One round of training: fit a line. Reads the state from stdin and writes it to stdout.

Each rank has its own points, so more workers see more points in the same time.
"""

import json
import random
import socket
import sys

from mpi4py import MPI

TRUE = (2.0, -3.0, 0.5)
POINTS = 200
RATE = 0.1

steps = int(sys.argv[1])
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
# One line, because with Open MPI 5.0.11 rank 0 does not see the end of its stdin.
state = world.bcast(json.loads(sys.stdin.readline()) if rank == 0 else None)
print(f"rank {rank} of {size} on {socket.gethostname()}", file=sys.stderr, flush=True)
weights = state["weights"]
generator = random.Random(f"{state['round']} {rank}")

for _ in range(steps):
    gradient, loss = [0.0] * len(weights), 0.0
    for _ in range(POINTS):
        x = (generator.uniform(-1, 1), generator.uniform(-1, 1), 1.0)
        error = sum((w - t) * each for w, t, each in zip(weights, TRUE, x, strict=True))
        loss += error**2 / POINTS
        gradient = [g + 2 * error * each / POINTS for g, each in zip(gradient, x, strict=True)]
    *gradient, loss = (world.allreduce(each) / size for each in (*gradient, loss))
    weights = [w - RATE * g for w, g in zip(weights, gradient, strict=True)]

hosts = world.gather(socket.gethostname())
if rank == 0:
    result = {"round": state["round"] + 1, "weights": weights, "loss": loss, "hosts": hosts}
    print(json.dumps(result))
