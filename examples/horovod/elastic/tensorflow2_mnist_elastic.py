"""Train a small network on synthetic digits, with as many ranks as there are at the moment.

After every step the ranks commit: when one is lost, the others go on from the last commit, and new
ranks start with it. Run by `horovodrun --min-np … --host-discovery-script …`.
"""

import argparse
import socket
import sys
from pathlib import Path

import horovod.tensorflow as hvd
import tensorflow as tf

sys.path.append(str(Path(__file__).resolve().parents[1]))
from synthetic_mnist import Progress, batch, cross_entropy, network

LEARNING_RATE = 0.01  # for one rank: with more, a step has more images and goes farther


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=256, help="Images per rank and step")
    return parser.parse_args()


def main() -> None:
    arguments = options()
    hvd.init()
    model = network()
    optimizer = tf.keras.optimizers.legacy.SGD(LEARNING_RATE * hvd.size())
    # Reading it creates it: a rank that joins must have all variables that the others have, or they
    # wait for each other for ever.
    assert optimizer.iterations == 0
    progress = Progress(arguments.steps)

    @tf.function
    def train_step(images: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = cross_entropy(digits, model(images, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return hvd.allreduce(loss)

    @hvd.elastic.run
    def train(state: hvd.elastic.TensorFlowKerasState) -> None:
        print(f"rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}", flush=True)
        while state.step < arguments.steps:
            # Seeded by the step too: a step that is repeated sees the same images.
            loss = train_step(*batch(arguments.batch_size, state.step, hvd.rank()))
            state.step += 1
            state.save()
            if hvd.rank() == 0:
                images = arguments.batch_size * hvd.size()
                progress.report(state.step, images, float(loss), hvd.size())
            # Here new and removed hosts are noticed. `state.commit()` is `save` and this.
            state.check_host_updates()

    def adapt_learning_rate() -> None:
        optimizer.learning_rate.assign(LEARNING_RATE * hvd.size())

    state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=0)
    state.register_reset_callbacks([adapt_learning_rate])
    train(state)
    if hvd.rank() == 0:
        print(f"trained for {state.step} steps, the last with {hvd.size()} ranks", flush=True)


if __name__ == "__main__":
    main()
