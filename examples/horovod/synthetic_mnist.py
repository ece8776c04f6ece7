"""Images in the shape of MNIST's, a network for them, and the line that reports progress.

Nothing is downloaded: an image is the pattern of its digit with noise, which can be learnt.
"""

import time

import numpy as np
import tensorflow as tf

SHAPE, DIGITS, NOISE = (28, 28, 1), 10, 2.0
PATTERNS = np.random.default_rng(0).standard_normal((DIGITS, *SHAPE))
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def batch(size: int, *seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and their digits, the same for the same seed."""
    generator = np.random.default_rng(seed)
    digits = generator.integers(DIGITS, size=size)
    images = PATTERNS[digits] + NOISE * generator.standard_normal((size, *SHAPE))
    return images.astype(np.float32), digits


def network() -> tf.keras.Model:
    """A small convolutional network, with the same first weights in every rank."""
    tf.keras.utils.set_random_seed(1)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, activation="relu", input_shape=SHAPE),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(DIGITS),
        ]
    )


class Progress:
    """Prints the line that `mpijob run` and `mpijob describe` show as a bar."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._last = time.perf_counter()

    def report(self, step: int, images: int, loss: float, ranks: int) -> None:
        """One line: `images` were trained on since the last one."""
        now = time.perf_counter()
        speed, self._last = images / (now - self._last), now
        print(
            f"progress: step={step} total={self._total} loss={loss:.4g} images/s={speed:.1f}"
            f" ranks={ranks}",
            flush=True,
        )
