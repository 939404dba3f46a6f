"""Several outputs and inputs through a session: honest agents, local and over SSH, and others."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detector_models import detector_path, photographs
from onnx import TensorProto, helper
from small_models import TFLITE, save_onnx
from ssh_servers import SshServer

from edgeflare.devices import DeviceSession, open_device
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import Limits
from edgeflare.errors import DeviceProtocolError, ModelError, UsageError
from edgeflare.models import InputSpec, OriginalModel, OutputReader
from edgeflare.types import SampleWithRow
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_agent.wire import Frame
from edgeflare_lab.testing import FakeAgent, Replace

PIXELS = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))
FIRST, SECOND = "serving_default_first:0", "serving_default_second:0"
INNER, LAST = "inner", "StatefulPartitionedCall:0"


def images(count: int) -> list[Any]:
    return list(np.random.default_rng(5).integers(0, 256, (count, 8, 8, 1), np.uint8))


def head_onnx(path: Path) -> Path:
    """A head of 64 anchors, ``boxes`` [1, 2, 64] and ``scores`` [1, 64, 3], on pixels [1, 8, 8, 1]."""
    x, boxes, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 8, 8, 1]), ("boxes", [1, 2, 64]), ("scores", [1, 64, 3]))
    )
    nodes = [
        helper.make_node("Reshape", ["x", "row"], ["one"]),
        helper.make_node("Neg", ["one"], ["minus"]),
        helper.make_node("Concat", ["one", "minus"], ["boxes"], axis=1),
        helper.make_node("Reshape", ["x", "column"], ["single"]),
        helper.make_node("Mul", ["single", "weights"], ["scores"]),
    ]
    constants = {
        "row": np.array([1, 1, 64]),
        "column": np.array([1, 64, 1]),
        "weights": np.array([1, 2, -1], np.float32),
    }
    return save_onnx(path, nodes, [x], [boxes, scores], constants)


def two_outputs_tflite(path: Path) -> Path:
    """``float.tflite``, whose scores before the softmax are an output, too, the first one."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf((TFLITE / "float.tflite").read_bytes(), 0)
    graph = model.subgraphs[0]
    inner = graph.operators[-1].inputs[0]
    graph.tensors[inner].name = INNER.encode()
    graph.outputs = [inner, *graph.outputs]
    model.signatureDefs = []
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


@contextmanager
def opened(ssh_server: SshServer, folder: Path, model: Path) -> Iterator[DeviceSession]:
    """A session over SSH with a model of this machine."""
    device = ssh_server.device(name="bench", cache=str(folder / "cache"))
    with closing(open_device(device, model)) as session:
        yield session


@contextmanager
def original(model: Path, runtime: str) -> Iterator[OriginalModel]:
    with closing(OriginalModel(model, runtime, {})) as loaded:
        yield loaded


def check_equal(here: Any, there: Any) -> None:
    for one, other in zip(here, there, strict=True):
        assert isinstance(one, tuple)
        assert [part.dtype for part in one] == [part.dtype for part in other]
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)


@pytest.mark.parametrize("runtime", ["onnx", "tflite"])
def test_both_outputs_over_ssh_are_the_originals(ssh_server, tmp_path, runtime) -> None:
    if runtime == "onnx":
        model, names, shapes = head_onnx(tmp_path / "m.onnx"), ["scores", "boxes"], [192, 128]
    else:
        model, names = two_outputs_tflite(tmp_path / "m.tflite"), [LAST, INNER]
        shapes = [4, 4]
    samples = images(5)
    with opened(ssh_server, tmp_path, model) as session, original(model, runtime) as here:
        session.configure(PIXELS, names)
        here.configure(PIXELS, names)
        found: Any = session.submit(samples).result(60).outputs
        check_equal(here.raw_answer(samples)[0], found)
        assert [part.size for part in found[0]] == shapes
        assert list(session.submit([]).result(60).outputs) == []
        session.configure(PIXELS, names[0])
        assert isinstance(session.submit(samples[:1]).result(60).outputs[0], np.ndarray)


def test_anchors_are_kept_on_the_device(ssh_server: SshServer, tmp_path: Path) -> None:
    model = head_onnx(tmp_path / "m.onnx")
    keep = {"count": 3, "scores": 1, "axis": [2, 1], "rows": [0, 1]}
    with opened(ssh_server, tmp_path, model) as session, original(model, "onnx") as here:
        for one in (session, here):
            one.configure(PIXELS, ["boxes", "scores"], keep=keep)
        sample = images(1)[0]
        outputs: Any = session.submit([sample]).result(60).outputs
        [(boxes, scores)] = outputs
        check_equal(here.raw_answer([sample])[0], [(boxes, scores)])
        brightest = np.sort(np.argsort(-sample.reshape(-1).astype(int), kind="stable")[:3])
        np.testing.assert_array_equal(boxes[0, 0], sample.reshape(-1)[brightest] / np.float32(255))
        assert (boxes.shape, scores.shape) == ((1, 2, 3), (1, 3, 3))


def test_a_model_with_two_inputs_over_ssh(ssh_server: SshServer, tmp_path: Path) -> None:
    model, samples = TFLITE / "two_inputs.tflite", images(3)
    fixed = {SECOND: np.random.default_rng(1).random((1, 8, 8, 1))}
    with opened(ssh_server, tmp_path, model) as session, original(model, "tflite") as here:
        with pytest.raises(UsageError, match=r"--fixed-inputs FILE.npz"):
            session.configure(PIXELS, None)
        with pytest.raises(ModelError, match=r"--fixed-inputs FILE.npz"):
            here.configure(PIXELS, None)
        session.configure(PIXELS, None, given=GivenInputs((), fixed))
        here.fix_inputs(GivenInputs((), fixed))
        here.configure(PIXELS, None)
        assert here.input.name == FIRST
        found: Any = session.submit(samples).result(60).outputs
        raws: Any = here.raw_answer(samples)[0]
        np.testing.assert_array_equal(found, raws)
        session.configure(PIXELS, None, given=GivenInputs((FIRST,), {SECOND: fixed[SECOND] + 1}))
        other: Any = session.submit(samples).result(60).outputs
        assert not np.array_equal(found, other)


def test_two_inputs_are_parts_of_one_picture_over_ssh(ssh_server, tmp_path) -> None:
    model, [first, second, third] = TFLITE / "two_inputs.tflite", images(3)
    rows = np.stack([second, third])[:, None] / np.float32(255)
    apart = GivenInputs((FIRST,), {SECOND: rows}, rows=2)
    together = GivenInputs((FIRST, SECOND), axis=-2)
    wide = PIXELS._replace(shape=(1, 8, 16, 1), size=(8, 16))
    with opened(ssh_server, tmp_path, model) as session, original(model, "tflite") as here:
        session.configure(PIXELS, None, given=apart)
        asked = [SampleWithRow(first, 1), SampleWithRow(first, 0)]
        found: Any = session.submit(asked).result(60).outputs
        here.fix_inputs(apart)
        here.configure(PIXELS, None)
        np.testing.assert_array_equal(found, here.raw_answer(asked)[0])  # type: ignore[arg-type]
        session.configure(wide, None, given=together)
        pictures = [np.hstack([first, third]), np.hstack([first, second])]
        joined: Any = session.submit(pictures).result(60).outputs
        here.fix_inputs(together)
        assert (here.input.name, here.input.shape) == (f"{FIRST},{SECOND}", (1, 8, 16, 1))
        here.configure(wide, None)
        np.testing.assert_array_equal(joined, here.raw_answer(pictures)[0])  # type: ignore[arg-type]
        np.testing.assert_array_equal(joined, found)
        with pytest.raises(UsageError, match="neither resized"):
            session.configure(wide._replace(resize="bilinear"), None, given=together)


def test_another_process_has_the_same_fixed_inputs(tmp_path: Path) -> None:
    model = TFLITE / "two_inputs.tflite"
    with original(model, "tflite") as here:
        here.fix_inputs(GivenInputs((), {SECOND: np.ones((1, 8, 8, 1))}))
        here.configure(PIXELS, None)
        here.read_with(OutputReader(here.outputs[0], "probabilities"))
        with closing(here.settings.load(here=True)) as other:
            for sample in images(2):
                np.testing.assert_array_equal(other.raw(sample), here.raw(sample))


ASKED = ["y", "z"]
Y, Z = np.zeros((1, 10), np.float32), np.zeros((1, 6), np.int8)
LOADED = {
    "outputs": [
        {"name": "y", "shape": [1, 10], "dtype": "float32", "quantization": None},
        {"name": "z", "shape": [1, 6], "dtype": "int8", "quantization": [0.5, 3]},
        {"name": "open", "shape": [1, None, 3], "dtype": "float32", "quantization": None},
    ]
}
SAMPLE = np.zeros((4, 4, 1), np.uint8)
SMALL = InputSpec((1, 4, 4, 1), "float32", (4, 4), 1)
WRONG: dict[str, tuple[list[Any], Any, str]] = {
    "one array too few": (
        [Y, Z, Y],
        2,
        "arrays = 3, expected those of 2 samples with 2 outputs each",
    ),
    "one array too many": ([Y, Z, Y, Z, Y], 2, "arrays = 5, expected those of 2 samples"),
    "in another order": ([Z, Y, Z, Y], 2, 'output .y. = "1 x 6 int8", expected 1 x 10 float32'),
    "second output of another dtype": (
        [Y, Z, Y, Z.astype(np.uint8)],
        2,
        'output .z. = "1 x 6 uint8", expected 1 x 6 int8',
    ),
    "second output truncated": (
        [Y, Z[:, :5], Y, Z],
        2,
        'output .z. = "1 x 5 int8", expected 1 x 6',
    ),
    "second output empty": ([Y, Z[:0], Y, Z], 2, 'output .z. = "0 x 6 int8", expected 1 x 6'),
    "another count stated": ([Y, Z, Y, Z], 4, "outputs = 4, expected 2 a sample"),
    "no count stated": ([Y, Z, Y, Z], None, "outputs = null, expected 2 a sample"),
    "a count of text": ([Y, Z, Y, Z], "2", 'outputs = "2", expected a whole number'),
}


@contextmanager
def fake(agent: FakeAgent, there: Provisioned) -> Iterator[DeviceSession]:
    with closing(
        DeviceSession.open(agent.transport(), there, "onnx", {}, limits=Limits(timeout_s=10.0))
    ) as session:
        yield session


def sending(arrays: list[Any], count: Any) -> FakeAgent:
    def change(honest: Frame) -> Frame:
        header = {**honest.header, "outputs": count}
        if count is None:
            del header["outputs"]
        return Frame(honest.kind, header, tuple(arrays))

    return FakeAgent(Replace("RESULT", change), loaded=LOADED, infer=lambda _: (Y, Z))


def test_an_honest_agent_sends_tuples(nothing_there: Provisioned) -> None:
    with fake(FakeAgent(loaded=LOADED, infer=lambda _: (Y, Z)), nothing_there) as session:
        session.configure(SMALL, ASKED)
        check_equal(session.submit([SAMPLE] * 2).result(20).outputs, [(Y, Z)] * 2)


@pytest.mark.parametrize("case", WRONG)
def test_outputs_that_are_not_as_announced_end_the_session(nothing_there, case) -> None:
    arrays, count, words = WRONG[case]
    with fake(sending(arrays, count), nothing_there) as session:
        session.configure(SMALL, ASKED)
        with pytest.raises(DeviceProtocolError, match=words):
            session.submit([SAMPLE] * 2).result(20)


def test_unasked_tuples_end_the_session(nothing_there: Provisioned) -> None:
    with fake(sending([Y], 1), nothing_there) as session:
        session.configure(SMALL, "y")
        with pytest.raises(DeviceProtocolError, match="outputs"):
            session.submit([SAMPLE]).result(20)


@pytest.mark.parametrize(
    ("array", "fits"),
    [
        (np.zeros((1, 2, 3), np.float32), True),
        (np.zeros((1, 5, 3), np.float32), True),
        (np.zeros((1, 6, 3), np.float32), False),
        (np.zeros((1, 5, 4), np.float32), False),
        (np.zeros(15, np.float32), False),
        (np.zeros((1, 0, 3), np.float32), False),
    ],
)
def test_open_axes_hold_no_more_anchors_than_are_kept(nothing_there, array, fits) -> None:
    with fake(sending([array, Z], 2), nothing_there) as session:
        keep = {"count": 5, "scores": 0, "axis": [1, None]}
        session.configure(SMALL, ["open", "z"], keep=keep)
        pending = session.submit([SAMPLE])
        if fits:
            outputs: Any = pending.result(20).outputs
            assert outputs[0][0].shape == array.shape
        else:
            with pytest.raises(DeviceProtocolError, match="output 'open'"):
                pending.result(20)


def test_closed_axes_hold_exactly_what_is_kept(nothing_there: Provisioned) -> None:
    for size, fits in ((4, True), (3, False), (10, False)):
        with fake(sending([Y[:, :size]], 1), nothing_there) as session:
            session.configure(SMALL, ["y"], keep={"count": 4, "scores": 0, "axis": [1]})
            error = session.submit([SAMPLE]).exception(20)
            assert (error is None) is fits, error


def test_the_device_entry_of_this_machine_takes_two_inputs_too(device, tmp_path) -> None:
    with closing(open_device(device, TFLITE / "two_inputs.tflite")) as session:
        assert [one.name for one in session.model.inputs] == [SECOND, FIRST]
        session.configure(
            PIXELS, None, given=GivenInputs((SECOND,), {FIRST: np.ones((1, 8, 8, 1))})
        )
        assert session.submit(images(1)).result(60).outputs[0].shape == (1, 4)  # type: ignore[union-attr]


def test_the_best_anchors_of_a_real_detector_cost_few_bytes(device, shared_data) -> None:
    model, most = detector_path(shared_data, "rfb320_int8_perchannel"), 100
    spec = InputSpec(
        *((1, 3, 240, 320), "float32", (240, 320), 3),
        layout="CHW",
        mean=(127.0,),
        std=(128.0,),
        resize="bilinear",
    )
    samples: list[Any] = [one[:, :, ::-1] for one in photographs(shared_data)[:2]]
    keep = {"count": most, "scores": 0, "axis": [1, 1], "rows": [1, 1]}
    with closing(open_device(device, model)) as session:
        session.configure(spec, ["scores", "boxes"])
        whole: Any = session.submit(samples).result(60).outputs
        session.configure(spec, ["scores", "boxes"], keep=keep)
        reduced: Any = session.submit(samples).result(60).outputs
    for (scores, boxes), few in zip(whole, reduced, strict=True):
        faces = np.sort(np.argsort(-scores[0, :, 1], kind="stable")[:most])
        check_equal([(scores[:, faces], boxes[:, faces])], [few])
        assert sum(one.nbytes for one in few) * 44 < scores.nbytes + boxes.nbytes
