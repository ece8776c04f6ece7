"""Measure how many synthetic ImageNet images per second a model is trained on, with Horovod.

Takes the flags of TensorFlow's benchmark of this name, as far as they are below, and prints its
report: a header, a line for each rank every few steps, and the sum of all ranks.
"""

import argparse
import time
from collections.abc import Callable

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

IMAGENET_IMAGES, CLASSES = 1_281_167, 1000
applications = tf.keras.applications


def trivial(input_shape: tuple[int, ...], **_: object) -> tf.keras.Model:
    """A perceptron on a thumbnail: for trying things out."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.AveragePooling2D(32, input_shape=input_shape),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(256, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


# Each with the width and height of its images.
MODELS: dict[str, tuple[Callable[..., tf.keras.Model], int]] = {
    "trivial": (trivial, 224),
    "resnet50": (applications.ResNet50, 224),
    "resnet101": (applications.ResNet101, 224),
    "resnet152": (applications.ResNet152, 224),
    "vgg16": (applications.VGG16, 224),
    "vgg19": (applications.VGG19, 224),
    "inception3": (applications.InceptionV3, 299),
    "mobilenet": (applications.MobileNet, 224),
}
optimizers = tf.keras.optimizers.legacy
OPTIMIZERS: dict[str, Callable[[argparse.Namespace], tf.keras.optimizers.Optimizer]] = {
    "sgd": lambda flags: optimizers.SGD(flags.init_learning_rate),
    "momentum": lambda flags: optimizers.SGD(flags.init_learning_rate, momentum=flags.momentum),
    "rmsprop": lambda flags: optimizers.RMSprop(flags.init_learning_rate),
    "adam": lambda flags: optimizers.Adam(flags.init_learning_rate),
}


def positive(text: str) -> int:
    """A number of things of which there must be one."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parsed_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    add = parser.add_argument
    add("--model", choices=MODELS, default="trivial")
    add("--batch_size", type=positive, default=64, metavar="N", help="Images per rank and step")
    add("--num_batches", type=positive, default=100, metavar="N", help="Measured steps")
    add("--num_warmup_batches", type=int, default=10, metavar="N", help="Steps before those")
    add("--display_every", type=positive, default=10, metavar="N", help="Steps between two lines")
    add("--variable_update", choices=["horovod"], default="horovod")
    add("--device", choices=["cpu", "gpu"], help="Default: gpu if there is one")
    add("--data_format", choices=["NHWC", "NCHW"], help="Default: NCHW on a GPU, else NHWC")
    add("--optimizer", choices=OPTIMIZERS, default="sgd")
    add("--init_learning_rate", type=float, default=0.005, metavar="RATE")
    add("--momentum", type=float, default=0.9, metavar="M", help="For --optimizer=momentum")
    add("--weight_decay", type=float, default=0.00004, metavar="FACTOR")
    add("--num_intra_threads", type=int, default=0, metavar="N", help="Default: one per core")
    add("--num_inter_threads", type=int, default=0, metavar="N", help="Default: one per core")
    add("--tf_random_seed", type=int, default=1234, metavar="SEED")
    flags = parser.parse_args()

    gpus = tf.config.list_physical_devices("GPU")
    flags.device = flags.device or ("gpu" if gpus else "cpu")
    flags.data_format = flags.data_format or ("NCHW" if flags.device == "gpu" else "NHWC")
    if flags.device == "gpu" and not gpus:
        parser.error("--device=gpu: TensorFlow finds no GPU here; use --device=cpu")
    if flags.device == "cpu" and flags.data_format == "NCHW":
        parser.error("--data_format=NCHW: TensorFlow has this on GPUs only; use --data_format=NHWC")
    return flags


def configure(flags: argparse.Namespace) -> None:
    """One GPU for each rank of a host, or none."""
    gpus = tf.config.list_physical_devices("GPU")
    own = gpus[hvd.local_rank() :][:1] if flags.device == "gpu" else []
    tf.config.set_visible_devices(own, "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(flags.num_intra_threads)
    tf.config.threading.set_inter_op_parallelism_threads(flags.num_inter_threads)
    is_first = flags.data_format == "NCHW"
    tf.keras.backend.set_image_data_format("channels_first" if is_first else "channels_last")
    tf.keras.utils.set_random_seed(flags.tf_random_seed)


def header(flags: argparse.Namespace) -> str:
    together = flags.batch_size * hvd.size()
    epochs = flags.num_batches * together / IMAGENET_IMAGES
    devices = [f"horovod/{flags.device}:{rank}" for rank in range(hvd.size())]
    return "\n".join(
        [
            f"TensorFlow:  {'.'.join(tf.__version__.split('.')[:2])}",
            f"Model:       {flags.model}",
            "Dataset:     imagenet (synthetic)",
            "Mode:        training",
            "SingleSess:  False",
            f"Batch size:  {together} global",
            f"             {flags.batch_size} per device",
            f"Num batches: {flags.num_batches}",
            f"Num epochs:  {epochs:.2f}",
            f"Devices:     {devices}",
            "NUMA bind:   False",
            f"Data format: {flags.data_format}",
            f"Optimizer:   {flags.optimizer}",
            f"Variables:   {flags.variable_update}",
        ]
    )


def synthetic_batch(flags: argparse.Namespace) -> tuple[tf.Tensor, tf.Tensor]:
    """One batch of this rank, for all steps: its input costs nothing, as in the original."""
    generator = np.random.default_rng([flags.tf_random_seed, hvd.rank()])
    images = generator.standard_normal((flags.batch_size, *image_shape(flags)), dtype=np.float32)
    return tf.constant(images), tf.constant(generator.integers(CLASSES, size=flags.batch_size))


def image_shape(flags: argparse.Namespace) -> tuple[int, ...]:
    width = MODELS[flags.model][1]
    return (3, width, width) if flags.data_format == "NCHW" else (width, width, 3)


def train_function(flags: argparse.Namespace) -> Callable[[], float]:
    """A function that trains one step and returns the loss of this rank."""
    create, _ = MODELS[flags.model]
    shape = image_shape(flags)
    model = create(input_shape=shape, weights=None, classes=CLASSES, classifier_activation=None)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = OPTIMIZERS[flags.optimizer](flags)
    images, labels = synthetic_batch(flags)

    @tf.function
    def train_step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            decay = tf.add_n([tf.nn.l2_loss(each) for each in model.trainable_variables])
            loss = cross_entropy(labels, model(images, training=True)) + flags.weight_decay * decay
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    hvd.broadcast_variables(model.variables, root_rank=0)
    return lambda: float(train_step())


def step_line(step: int, images: int, seconds: list[float], loss: float) -> str:
    """The speed of this rank so far, its standard error, and its jitter."""
    speeds = images / np.array(seconds)
    error = np.std(speeds) / np.sqrt(len(speeds))
    jitter = 1.4826 * np.median(np.abs(speeds - np.median(speeds)))
    speed = images / np.mean(seconds)
    return f"{step}\timages/sec: {speed:.1f} +/- {error:.1f} (jitter = {jitter:.1f})\t{loss:.3f}"


def main() -> None:
    flags = parsed_flags()
    hvd.init()
    configure(flags)

    def print_once(text: str) -> None:
        if hvd.rank() == 0:
            print(text, flush=True)

    print_once(header(flags))
    print_once("==========")
    print_once("Generating training model")
    train = train_function(flags)
    print_once("Running warm up")
    for _ in range(flags.num_warmup_batches):
        train()
    print_once("Done warm up")
    print_once("Step\tImg/sec\ttotal_loss")
    seconds = list[float]()
    for step in range(1, flags.num_batches + 1):
        started = time.perf_counter()
        loss = train()
        seconds.append(time.perf_counter() - started)
        if step == 1 or step % flags.display_every == 0:
            print(step_line(step, flags.batch_size, seconds, loss), flush=True)
    own = np.array(flags.batch_size / np.mean(seconds))
    total = float(hvd.allreduce(own, op=hvd.Sum))
    print_once("-" * 64)
    print_once(f"total images/sec: {total:.2f}")


if __name__ == "__main__":
    main()
