"""Data-parallel training of a small network on synthetic images, and how fast it goes.

Every rank has images of its own; after each step all ranks add up their gradients (Allreduce) and
make the same change to the same weights. The run fails if the loss on images that nobody trained
with did not fall, or if the weights of the ranks are not the same in the end.
"""

import argparse
import os
import sys
import time

# Ranks are the parallelism here; threads of the linear algebra would fight over the same cores.
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
    parser.add_argument("--batch-size", type=int, default=64, help="images per rank and step")
    parser.add_argument("--num-batches", type=int, default=100, help="steps that are measured")
    parser.add_argument("--num-warmup-batches", type=int, default=10, help="steps before them")
    parser.add_argument("--display-every", type=int, default=10, help="steps between two lines")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def images(patterns: np.ndarray, count: int, dice: np.random.Generator):
    """Noisy copies of the patterns, and which pattern each one is of."""
    labels = dice.integers(CLASSES, size=count)
    return patterns[labels] + NOISE * dice.standard_normal((count, PIXELS)), labels


def layers(flat: np.ndarray) -> list[np.ndarray]:
    """Views of one flat array, so that one Allreduce is enough for all of them."""
    parts = np.split(flat, np.cumsum(SIZES)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)]


def first_weights(dice: np.random.Generator) -> np.ndarray:
    flat = np.zeros(sum(SIZES))
    inner, _, outer, _ = layers(flat)
    inner[:] = dice.standard_normal(inner.shape) / np.sqrt(PIXELS)
    outer[:] = dice.standard_normal(outer.shape) / np.sqrt(HIDDEN)
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
    """A line as tf_cnn_benchmarks prints it: speed, its standard error, and a robust deviation."""
    speeds = images / np.array(seconds)
    error = np.std(speeds) / np.sqrt(len(speeds))
    jitter = 1.4826 * np.median(np.abs(speeds - np.median(speeds)))
    speed = images / np.mean(seconds)
    return f"{step}\timages/sec: {speed:.1f} +/- {error:.1f} (jitter = {jitter:.1f})\t{loss:.3f}"


def main() -> None:
    chosen = options()
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()

    def say(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    common = np.random.default_rng(chosen.seed)
    patterns = common.standard_normal((CLASSES, PIXELS)) / 4
    unseen = images(patterns, UNSEEN_IMAGES, common)
    weights = first_weights(common)
    own = np.random.default_rng([chosen.seed, rank])
    hosts = world.gather(MPI.Get_processor_name())

    say(f"Model:       {PIXELS}-{HIDDEN}-{CLASSES} perceptron, {weights.size} weights")
    say("Dataset:     synthetic")
    say(f"Batch size:  {chosen.batch_size * size} global")
    say(f"             {chosen.batch_size} per rank")
    say(f"Num batches: {chosen.num_batches}")
    say(f"Ranks:       {hosts}")
    say("Optimizer:   momentum")
    say("Step\tImg/sec\ttotal_loss")

    loss_before, _ = loss_and_gradient(weights, *unseen)
    velocity = np.zeros_like(weights)
    shared = np.empty(weights.size + 1)  # the gradient, and the loss behind it
    together, seconds = chosen.batch_size * size, list[float]()
    for step in range(1 - chosen.num_warmup_batches, chosen.num_batches + 1):
        started = time.perf_counter()
        loss, gradient = loss_and_gradient(weights, *images(patterns, chosen.batch_size, own))
        shared[:-1], shared[-1] = gradient, loss
        world.Allreduce(MPI.IN_PLACE, shared)
        shared /= size
        velocity = MOMENTUM * velocity + shared[:-1]
        weights -= chosen.learning_rate * velocity
        if step > 0:
            seconds.append(time.perf_counter() - started)
        if step == 1 or (step > 0 and step % chosen.display_every == 0):
            say(progress(step, together, seconds, shared[-1]))

    # All ranks must come to the same judgement, also where their weights differ.
    loss_after = world.bcast(loss_and_gradient(weights, *unseen)[0])
    low, high = np.empty_like(weights), np.empty_like(weights)
    world.Allreduce(weights, low, MPI.MIN)
    world.Allreduce(weights, high, MPI.MAX)

    say("-" * 64)
    say(f"total images/sec: {together / np.mean(seconds):.2f}")
    say(f"loss on unseen images: {loss_before:.3f} before, {loss_after:.3f} after")
    complaint = (
        "the ranks do not have the same weights"
        if not np.array_equal(low, high)
        else "the loss did not fall"
        if not loss_after < loss_before
        else None
    )
    if complaint:
        # One rank fails, after all have left MPI: mpirun need not end anybody.
        MPI.Finalize()
        sys.exit(complaint if rank == 0 else 0)
    say(f"all {size} ranks have the same weights")


if __name__ == "__main__":
    main()
