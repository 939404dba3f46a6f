# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["tensorflow-cpu==2.21.0", "tf_keras==2.21.0"]
# ///
"""Makes the small TFLite models that lie beside this file: random weights, fixed seeds.

Run it with ``python tests/data/tflite/build_tflite_models.py``; it overwrites the models. They use
operators that both ai-edge-litert and tflite-runtime 2.14 know.

============= ============================== ====================================================
file          input                          output
============= ============================== ====================================================
float         1x8x8x1 float32, pixels / 255  1x4 float32, softmax
int8          1x8x8x1 int8, same weights     1x4 int8, softmax, step 1/256
uint8         1x8x8x1 uint8, same weights    1x4 uint8, softmax, step 1/256
flat          1x64 float32, pixels / 255     1x4 float32, logits
lstm          1x5x4 float32                  1x3 float32, softmax; its state (variable tensors)
                                             lasts from one invocation to the next
nan           1x8x8x1 float32, pixels / 255  1x4 float32, softmax; NaN where the mean is over 0.9
two_inputs    two of 1x8x8x1 float32         1x4 float32, softmax
============= ============================== ====================================================
"""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # its LSTM becomes one fused operator

import numpy as np
import tensorflow as tf
import tf_keras as keras

HERE = Path(__file__).parent
layers = keras.layers


def initializer(seed: int) -> keras.initializers.Initializer:
    """Weights large enough that different images get clearly different answers."""
    return keras.initializers.RandomNormal(stddev=0.8, seed=seed)


def convolutional() -> keras.Model:
    """Two convolutions and a dense layer on an 8x8 grey image."""
    image = keras.Input((8, 8, 1), batch_size=1)
    x = layers.Conv2D(4, 3, strides=2, activation="relu", kernel_initializer=initializer(1))(image)
    x = layers.Conv2D(6, 3, activation="relu", kernel_initializer=initializer(2))(x)
    x = layers.Dense(4, kernel_initializer=initializer(3))(layers.Flatten()(x))
    return keras.Model(image, layers.Softmax()(x))


def flat() -> keras.Model:
    """A dense net on 64 values that ends in logits."""
    values = keras.Input((64,), batch_size=1)
    x = layers.Dense(8, activation="relu", kernel_initializer=initializer(4))(values)
    return keras.Model(values, layers.Dense(4, kernel_initializer=initializer(5))(x))


def lstm() -> keras.Model:
    """An LSTM over five steps of four values."""
    steps = keras.Input((5, 4), batch_size=1)
    x = layers.LSTM(
        6,
        kernel_initializer=initializer(6),
        recurrent_initializer=initializer(7),
    )(steps)
    x = layers.Dense(3, kernel_initializer=initializer(8))(x)
    return keras.Model(steps, layers.Softmax()(x))


def nan() -> keras.Model:
    """A softmax multiplied and divided by the same gate, which is zero for nearly white images."""
    image = keras.Input((8, 8, 1), batch_size=1)
    gate = tf.nn.relu(0.9 - tf.reduce_mean(image, axis=[1, 2]))
    x = layers.Dense(4, kernel_initializer=initializer(9))(layers.Flatten()(image))
    return keras.Model(image, layers.Softmax()(x) * gate / gate)


def two_inputs() -> keras.Model:
    """A dense layer on two images."""
    first = keras.Input((8, 8, 1), batch_size=1, name="first")
    second = keras.Input((8, 8, 1), batch_size=1, name="second")
    x = layers.Flatten()(layers.Concatenate()([first, second]))
    x = layers.Dense(4, kernel_initializer=initializer(10))(x)
    return keras.Model([first, second], layers.Softmax()(x))


def converter(model: keras.Model) -> tf.lite.TFLiteConverter:
    """A converter that keeps to operators of older runtimes."""
    made = tf.lite.TFLiteConverter.from_keras_model(model)
    made._experimental_disable_per_channel_quantization_for_dense_layers = True
    return made


def calibration() -> Iterator[list[np.ndarray]]:
    """Two hundred images of noise, 1x8x8x1 float32 in [0, 1]."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        yield [rng.random((1, 8, 8, 1), dtype=np.float32)]


def quantized(model: keras.Model, dtype: tf.DType) -> bytes:
    """Full-integer post-training quantisation with input and output of `dtype`."""
    made = converter(model)
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    made.representative_dataset = calibration
    made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    made.inference_input_type = dtype
    made.inference_output_type = dtype
    return made.convert()


def main() -> None:
    """Write every model beside this file."""
    image_model = convolutional()
    models = {
        "float": converter(image_model).convert(),
        "int8": quantized(image_model, tf.int8),
        "uint8": quantized(image_model, tf.uint8),
        "flat": converter(flat()).convert(),
        "lstm": converter(lstm()).convert(),
        "nan": converter(nan()).convert(),
        "two_inputs": converter(two_inputs()).convert(),
    }
    for name, content in models.items():
        (HERE / f"{name}.tflite").write_bytes(content)
        print(f"{name}.tflite: {len(content)} bytes")


if __name__ == "__main__":
    main()
