"""Estimates pi: every rank throws darts, and all of them add up their hits."""

import random
import socket
import sys
import time

from mpi4py import MPI

THROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
print(f"rank {rank} of {size} on {socket.gethostname()}", flush=True)

started = time.perf_counter()
dice = random.Random(rank)
hits = sum(dice.random() ** 2 + dice.random() ** 2 <= 1 for _ in range(THROWS))
total = world.allreduce(hits)

if rank == 0:
    pi = 4 * total / (THROWS * size)
    print(f"pi is about {pi:.4f} ({THROWS * size} throws, {time.perf_counter() - started:.2f} s)")
    if abs(pi - 3.14159) > 0.02:
        sys.exit("that is not pi")
