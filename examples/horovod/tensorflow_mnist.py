"""Train a small network on synthetic digits with Horovod, and a fixed number of ranks.

Runs under `mpirun`, `mpiexec` and `horovodrun`, or alone with one rank.
"""

import argparse
import socket
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from synthetic_mnist import Progress, batch, cross_entropy, network

LEARNING_RATE = 0.01  # for one rank: with more, a step has more images and goes farther
REPORT_EVERY = 10


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64, help="Images per rank and step")
    return parser.parse_args()


def have_same_weights(model: tf.keras.Model) -> bool:
    """Whether this is so for all ranks, as all of them find."""
    own = np.concatenate([weights.ravel() for weights in model.get_weights()])
    low, high = hvd.allreduce(own, op=hvd.Min), hvd.allreduce(own, op=hvd.Max)
    return bool(np.array_equal(low, high))


def main() -> None:
    arguments = options()
    hvd.init()
    print(f"rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}", flush=True)
    model = network()
    optimizer = tf.keras.optimizers.legacy.SGD(LEARNING_RATE * hvd.size())
    progress = Progress(arguments.steps)

    @tf.function
    def train_step(images: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = cross_entropy(digits, model(images, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return hvd.allreduce(loss)

    hvd.broadcast_variables(model.variables, root_rank=0)
    losses = []
    for step in range(1, arguments.steps + 1):
        losses.append(float(train_step(*batch(arguments.batch_size, step, hvd.rank()))))
        if hvd.rank() == 0 and step % REPORT_EVERY == 0:
            images = REPORT_EVERY * arguments.batch_size * hvd.size()
            progress.report(step, images, losses[-1], hvd.size())

    problem = (
        "the ranks do not have the same weights"
        if not have_same_weights(model)
        else "the loss did not fall"
        if not losses[-1] < losses[0]
        else None
    )
    if problem:
        sys.exit(problem)
    if hvd.rank() == 0:
        print(f"all {hvd.size()} ranks have the same weights", flush=True)


if __name__ == "__main__":
    main()
