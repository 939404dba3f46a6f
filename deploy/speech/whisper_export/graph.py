"""One ONNX graph of a Whisper model: the encoder, and greedy decoding as a loop in the graph.

Input: ``mel`` float32 [1, 80, 3000], Whisper's log-mel spectrogram of 30 seconds.
Outputs: ``tokens`` int64 [n], the tokens chosen one after the other, the end's token last where
decoding ended by itself; ``scores`` float32 [n, 2], of every token its probability and the highest
probability of all other tokens. n is at most 224.

Differences from Whisper's own decoding: greedy only (no beams, no temperatures, no second try),
the prompt asks for no timestamps, and one window of 30 seconds is decoded.
"""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import TensorProto, helper

from whisper_export.builder import OPSET, Builder, Weights
from whisper_export.layers import Layers
from whisper_export.model import WhisperModel
from whisper_export.weights import floats

MEL_SHAPE = (1, 80, 3000)
LONGEST = 224
IR_VERSION = 8
_NEVER = -1e30


def whisper_onnx(model: WhisperModel) -> onnx.ModelProto:
    """The ONNX model of ``model`` in float32, with its metadata; the same bytes every time."""
    weights = Weights()
    builder = Builder(weights, "whisper")
    memory = _encoder(model, builder)
    crossed = _crossed(model, builder, memory)
    tokens, scores = _loop(model, builder, crossed)
    skipped = len(model.prompt) - 1
    first, last = builder.integers(skipped), builder.integers(np.iinfo(np.int64).max)
    axis = builder.integers(0)
    outputs = [
        builder.rename(builder.call("Slice", tokens, first, last, axis), "tokens"),
        builder.rename(builder.call("Slice", scores, first, last, axis), "scores"),
    ]
    graph = helper.make_graph(
        builder.nodes,
        "whisper",
        [helper.make_tensor_value_info("mel", TensorProto.FLOAT, MEL_SHAPE)],
        [
            helper.make_tensor_value_info(outputs[0], TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info(outputs[1], TensorProto.FLOAT, ["n", 2]),
        ],
        list(weights.tensors.values()),
    )
    exported = helper.make_model(
        graph,
        ir_version=IR_VERSION,
        producer_name="edgeflare",
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(exported, metadata(model))
    onnx.checker.check_model(exported)
    return exported


def metadata(model: WhisperModel) -> dict[str, str]:
    """What EdgeFlare reads in the file: how to decode its tokens, and what it wants to be fed."""
    decoder = {
        "kind": "tokens",
        "vocabulary": list(model.vocabulary[: model.text_tokens]),
        "bytes": True,
        "text_tokens": model.text_tokens,
    }
    return {
        "edgeflare.decoder": json.dumps(decoder, ensure_ascii=False),
        "edgeflare.input": json.dumps({"front_end": "whisper"}),
    }


def _encoder(model: WhisperModel, builder: Builder) -> str:
    """The features of the sound, float32 [1, 1500, width]."""
    layers = Layers(model, builder)
    hidden = layers.convolution("mel", "encoder/conv1", stride=1)
    hidden = layers.convolution(hidden, "encoder/conv2", stride=2)
    hidden = builder.call("Transpose", hidden, perm=[0, 2, 1])
    name = "encoder/position_encodings/encodings"
    positions = builder.constant(name, floats(model.weights, name))
    hidden = builder.call("Add", hidden, positions)
    for index in range(model.layers):
        layer = f"encoder/layer_{index}"
        attention = f"{layer}/self_attention"
        normal = layers.norm(hidden, f"{attention}/layer_norm")
        queries, keys, values = layers.projections(normal, f"{attention}/linear_0", 3)
        attended = layers.attention(queries, keys, values, f"{attention}/linear_1")
        hidden = layers.feed_forward(builder.call("Add", hidden, attended), f"{layer}/ffn")
    return layers.norm(hidden, "encoder/layer_norm")


def _crossed(model: WhisperModel, builder: Builder, memory: str) -> list[tuple[str, str]]:
    """The keys and values of the sound for each decoder layer, the same for all tokens."""
    layers = Layers(model, builder)
    found = []
    for index in range(model.layers):
        name = f"decoder/layer_{index}/attention/linear_1"
        keys, values = layers.projections(memory, name, 2)
        found.append((keys, values))
    return found


def _loop(model: WhisperModel, builder: Builder, crossed: list[tuple[str, str]]) -> tuple[str, str]:
    """Greedy decoding: of every step the token, int64 [steps], and its scores [steps, 2]."""
    size = model.width // model.heads
    empty = builder.constant("no_positions", np.zeros((1, model.heads, 0, size), np.float32))
    caches = [empty] * (2 * model.layers)
    steps = builder.constant("longest", np.array(LONGEST + len(model.prompt) - 1, np.int64))
    going = builder.constant("going", np.array(True))
    start = builder.integers(model.prompt[0])
    found = builder.node(
        "Loop",
        [steps, going, start, *caches],
        outputs=1 + len(caches) + 2,
        body=_step(model, builder.weights, crossed),
    )
    return found[-2], found[-1]


def _step(model: WhisperModel, weights: Weights, crossed: list[tuple[str, str]]) -> onnx.GraphProto:
    """The body of the loop: one token in, the next one out."""
    builder = Builder(weights, "step")
    layers = Layers(model, builder)
    # Kept as [width, tokens], one tensor serves both the look-up and the product at the end.
    embeddings = builder.constant(
        "decoder/embeddings", floats(model.weights, "decoder/embeddings/weight").T
    )
    column = builder.call("Gather", embeddings, "token", axis=1)
    hidden = builder.call("Reshape", column, builder.integers(1, 1, model.width))
    name = "decoder/position_encodings/encodings"
    places = builder.constant(name, floats(model.weights, name))
    place = builder.call("Reshape", "step", builder.integers(1))
    after = builder.call("Add", place, builder.integers(1))
    # A slice, for the quantiser would coarsen a look-up by Gather.
    here = builder.call("Slice", places, place, after, builder.integers(0))
    hidden = builder.call("Add", hidden, here)
    carried: list[str] = []
    for index, (keys, values) in enumerate(crossed):
        layer = f"decoder/layer_{index}"
        own = f"{layer}/self_attention"
        normal = layers.norm(hidden, f"{own}/layer_norm")
        queries, key, value = layers.projections(normal, f"{own}/linear_0", 3)
        all_keys = builder.call("Concat", f"keys_{index}", key, axis=2)
        all_values = builder.call("Concat", f"values_{index}", value, axis=2)
        carried += [all_keys, all_values]
        attended = layers.attention(queries, all_keys, all_values, f"{own}/linear_1")
        hidden = builder.call("Add", hidden, attended)
        cross = f"{layer}/attention"
        normal = layers.norm(hidden, f"{cross}/layer_norm")
        (queries,) = layers.projections(normal, f"{cross}/linear_0", 1)
        attended = layers.attention(queries, keys, values, f"{cross}/linear_2")
        hidden = layers.feed_forward(builder.call("Add", hidden, attended), f"{layer}/ffn")
    logits = builder.call("MatMul", layers.norm(hidden, "decoder/layer_norm"), embeddings)
    token, scores = _choice(model, builder, logits, place)
    following, going = _following(model, builder, token, place)
    outputs = [
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_tensor_value_info(following, TensorProto.INT64, [1]),
        *(_cache(model, name) for name in carried),
        helper.make_tensor_value_info(token, TensorProto.INT64, []),
        helper.make_tensor_value_info(scores, TensorProto.FLOAT, [2]),
    ]
    inputs = [
        helper.make_tensor_value_info("step", TensorProto.INT64, []),
        helper.make_tensor_value_info("was_going", TensorProto.BOOL, []),
        helper.make_tensor_value_info("token", TensorProto.INT64, [1]),
    ]
    for index in range(model.layers):
        inputs += [_cache(model, f"keys_{index}"), _cache(model, f"values_{index}")]
    return helper.make_graph(builder.nodes, "step", inputs, outputs)


def _cache(model: WhisperModel, name: str) -> onnx.ValueInfoProto:
    shape = [1, model.heads, None, model.width // model.heads]
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _choice(model: WhisperModel, builder: Builder, logits: str, place: str) -> tuple[str, str]:
    """The likeliest token that may be chosen, int64 [], and the two highest probabilities [2]."""
    mask = np.zeros((1, 1, len(model.vocabulary)), np.float32)
    mask[..., list(model.suppressed)] = _NEVER
    mask_at_first = mask.copy()
    mask_at_first[..., list(model.suppressed_at_first)] = _NEVER
    allowed = builder.call(
        "Where",
        builder.call("Equal", place, builder.integers(len(model.prompt) - 1)),
        builder.constant("suppressed_at_first", mask_at_first),
        builder.constant("suppressed", mask),
    )
    chances = builder.call("Softmax", builder.call("Add", logits, allowed), axis=-1)
    best, indices = builder.node("TopK", [chances, builder.integers(2)], outputs=2, axis=-1)
    pair = builder.call("Reshape", indices, builder.integers(2))
    token = builder.call("Gather", pair, builder.constant("zero", np.array(0, np.int64)))
    return token, builder.call("Reshape", best, builder.integers(2))


def _following(model: WhisperModel, builder: Builder, token: str, place: str) -> tuple[str, str]:
    """The token that the next step reads (the prompt's, while it lasts), and whether to go on."""
    last = len(model.prompt) - 1
    table = builder.constant("prompt", np.array([*model.prompt[1:], 0], np.int64))
    capped = builder.call("Min", place, builder.integers(last))
    asked = builder.call("Gather", table, capped, axis=0)
    in_prompt = builder.call("Less", place, builder.integers(last))
    following = builder.call("Where", in_prompt, asked, token)
    more = builder.call("Not", builder.call("Equal", following, builder.integers(model.end)))
    return following, builder.call("Squeeze", more)
