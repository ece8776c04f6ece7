"""Data-parallel training of a small network on synthetic images, with its speed.

Every rank has its own images. After each step the ranks add up their gradients (Allreduce) and
update the same weights in the same way. The run fails if the loss on unseen images did not fall, or
if the ranks end with different weights.
"""

import argparse
import os
import sys
import time

# One thread per rank: threads of the linear algebra would compete for the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from mpi4py import MPI

PIXELS, HIDDEN, CLASSES = 256, 128, 10
SHAPES = ((PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
SIZES = [int(np.prod(shape)) for shape in SHAPES]
NOISE = 2.0
MOMENTUM = 0.9
UNSEEN_IMAGES = 1000


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=64, help="Images per rank and step")
    parser.add_argument("--num-batches", type=int, default=100, help="Measured steps")
    parser.add_argument(
        "--num-warmup-batches", type=int, default=10, help="Steps before the measured ones"
    )
    parser.add_argument("--display-every", type=int, default=10, help="Steps between two lines")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def images(patterns: np.ndarray, count: int, generator: np.random.Generator):
    """Noisy copies of the patterns, and the pattern of each."""
    labels = generator.integers(CLASSES, size=count)
    return patterns[labels] + NOISE * generator.standard_normal((count, PIXELS)), labels


def layers(flat: np.ndarray) -> list[np.ndarray]:
    """Views of one flat array, so that one Allreduce is enough for all layers."""
    parts = np.split(flat, np.cumsum(SIZES)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)]


def first_weights(generator: np.random.Generator) -> np.ndarray:
    flat = np.zeros(sum(SIZES))
    inner, _, outer, _ = layers(flat)
    inner[:] = generator.standard_normal(inner.shape) / np.sqrt(PIXELS)
    outer[:] = generator.standard_normal(outer.shape) / np.sqrt(HIDDEN)
    return flat


def loss_and_gradient(weights: np.ndarray, x: np.ndarray, labels: np.ndarray):
    """Cross-entropy of a network with one hidden layer, and its derivative by the weights."""
    inner, inner_bias, outer, outer_bias = layers(weights)
    hidden = np.maximum(x @ inner + inner_bias, 0)
    scores = hidden @ outer + outer_bias
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    own = (np.arange(len(labels)), labels)
    loss = -np.log(chances[own] + 1e-300).mean()

    chances[own] -= 1
    chances /= len(labels)
    back = (chances @ outer.T) * (hidden > 0)
    parts = (x.T @ back, back.sum(axis=0), hidden.T @ chances, chances.sum(axis=0))
    return loss, np.concatenate([part.ravel() for part in parts])


def progress(step: int, images: int, seconds: list[float], loss: float) -> str:
    """A line in the format of tf_cnn_benchmarks: speed, its standard error, and its jitter."""
    speeds = images / np.array(seconds)
    error = np.std(speeds) / np.sqrt(len(speeds))
    jitter = 1.4826 * np.median(np.abs(speeds - np.median(speeds)))
    speed = images / np.mean(seconds)
    return f"{step}\timages/sec: {speed:.1f} +/- {error:.1f} (jitter = {jitter:.1f})\t{loss:.3f}"


def main() -> None:
    arguments = options()
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()

    def print_once(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    common = np.random.default_rng(arguments.seed)
    patterns = common.standard_normal((CLASSES, PIXELS)) / 4
    unseen = images(patterns, UNSEEN_IMAGES, common)
    weights = first_weights(common)
    own = np.random.default_rng([arguments.seed, rank])
    hosts = world.gather(MPI.Get_processor_name())

    print_once(f"Model:       {PIXELS}-{HIDDEN}-{CLASSES} perceptron, {weights.size} weights")
    print_once("Dataset:     synthetic")
    print_once(f"Batch size:  {arguments.batch_size * size} global")
    print_once(f"             {arguments.batch_size} per rank")
    print_once(f"Num batches: {arguments.num_batches}")
    print_once(f"Ranks:       {hosts}")
    print_once("Optimizer:   momentum")
    print_once("Step\tImg/sec\ttotal_loss")

    loss_before, _ = loss_and_gradient(weights, *unseen)
    velocity = np.zeros_like(weights)
    shared = np.empty(weights.size + 1)  # the gradient, then the loss
    together, seconds = arguments.batch_size * size, list[float]()
    for step in range(1 - arguments.num_warmup_batches, arguments.num_batches + 1):
        started = time.perf_counter()
        loss, gradient = loss_and_gradient(weights, *images(patterns, arguments.batch_size, own))
        shared[:-1], shared[-1] = gradient, loss
        world.Allreduce(MPI.IN_PLACE, shared)
        shared /= size
        velocity = MOMENTUM * velocity + shared[:-1]
        weights -= arguments.learning_rate * velocity
        if step > 0:
            seconds.append(time.perf_counter() - started)
        if step == 1 or (step > 0 and step % arguments.display_every == 0):
            print_once(progress(step, together, seconds, shared[-1]))

    # All ranks must decide the same, even if their weights differ.
    loss_after = world.bcast(loss_and_gradient(weights, *unseen)[0])
    low, high = np.empty_like(weights), np.empty_like(weights)
    world.Allreduce(weights, low, MPI.MIN)
    world.Allreduce(weights, high, MPI.MAX)

    print_once("-" * 64)
    print_once(f"total images/sec: {together / np.mean(seconds):.2f}")
    print_once(f"loss on unseen images: {loss_before:.3f} before, {loss_after:.3f} after")
    problem = (
        "the ranks do not have the same weights"
        if not np.array_equal(low, high)
        else "the loss did not fall"
        if not loss_after < loss_before
        else None
    )
    if problem:
        # Only rank 0 fails, after all ranks have left MPI, so that mpirun kills none of them.
        MPI.Finalize()
        sys.exit(problem if rank == 0 else 0)
    print_once(f"all {size} ranks have the same weights")


if __name__ == "__main__":
    main()
