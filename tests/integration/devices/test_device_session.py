"""Sessions with the real agent as a process on this machine."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.devices import LOCAL, Device, DeviceSession, Reply, fingerprint_digest, open_device
from edgeflare.errors import DeviceError, DevicePythonError, ModelError, UsageError
from edgeflare_agent.image_spec import InputSpec


@pytest.fixture
def session(device: Device, onnx_model: Path, pair_input: InputSpec) -> Iterator[DeviceSession]:
    session = open_device(device, onnx_model)
    session.configure(pair_input, "total")
    yield session
    session.close()


def image(value: int) -> Any:
    return np.full((4, 4, 1), value, np.uint8)


def test_model_and_device_are_described(session: DeviceSession) -> None:
    assert [tensor.name for tensor in session.model.inputs] == ["x"]
    assert [tensor.name for tensor in session.model.outputs] == ["total", "doubled"]
    assert session.model.runtime["name"] == "onnx"
    assert session.device["numpy"] == np.__version__
    json.dumps(session.fingerprint)
    assert session.fingerprint["runtime"]["threads"] == 1
    assert session.fingerprint["arch"] == session.device["arch"]


def test_answers_come_in_the_order_of_the_samples(session: DeviceSession) -> None:
    reply = session.submit([image(255), image(0), image(51)]).result()
    np.testing.assert_allclose(reply.outputs, [16.0, 0.0, 3.2], rtol=1e-6)
    assert len(reply.seconds) == 3
    assert all(one > 0 for one in reply.seconds)


def test_configure_holds_for_what_follows(session: DeviceSession, pair_input: InputSpec) -> None:
    before = session.submit([image(255)])
    session.configure(pair_input, "doubled")
    after = session.submit([image(255)])
    assert before.result().outputs[0] == pytest.approx(16.0)
    assert after.result().outputs[0] == pytest.approx(32.0)


def test_many_requests_from_many_threads_each_get_their_own_answer(session: DeviceSession) -> None:
    answers: dict[int, Future[Reply]] = {}

    def ask(values: range) -> None:
        for value in values:
            answers[value] = session.submit([image(value)])

    threads = [threading.Thread(target=ask, args=(range(n, 256, 4),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value in range(256):
        assert answers[value].result().outputs[0] == pytest.approx(16 * value / 255, rel=1e-5)
    assert session.in_flight == 0


def test_callbacks_may_submit_the_next_request(session: DeviceSession) -> None:
    last: Future[float] = Future()

    def go_on(done: "Future[Reply]", left: int = 50) -> None:
        if left == 0:
            last.set_result(float(done.result().outputs[0]))
        else:
            session.submit([image(left)]).add_done_callback(lambda one: go_on(one, left - 1))

    session.submit([image(0)]).add_done_callback(go_on)
    assert last.result(60) == pytest.approx(16 / 255, rel=1e-5)


def test_bad_requests_fail_alone(session: DeviceSession, pair_input: InputSpec) -> None:
    with pytest.raises(UsageError, match="output 'nothing'"):
        session.configure(pair_input, "nothing")
    wrong_size = session.submit([np.zeros((5, 4, 1), np.uint8)])
    good = session.submit([image(255)])
    assert isinstance(wrong_size.exception(), UsageError)
    assert good.result().outputs[0] == pytest.approx(16.0)


def test_request_over_the_limit_is_refused_at_once(session: DeviceSession) -> None:
    huge = np.broadcast_to(np.uint8(0), (1 << 20, 257, 1))
    with pytest.raises(UsageError, match="the limit"):
        session.submit([huge])


def test_close_fails_what_is_pending_and_may_be_repeated(session: DeviceSession) -> None:
    pending = [session.submit([image(1)] * 50) for _ in range(200)]
    pending[-1].cancel()
    session.close()
    session.close()
    outcomes = {type(one.exception()) for one in pending[:-1]}
    assert outcomes <= {type(None), DeviceError}
    assert DeviceError in outcomes
    with pytest.raises(CancelledError):
        pending[-1].result(0)
    assert isinstance(session.submit([image(1)]).exception(), DeviceError)
    with pytest.raises(DeviceError, match="was closed"):
        session.ping()


def test_close_from_a_callback(session: DeviceSession) -> None:
    closed = threading.Event()

    def close(_: "Future[Reply]") -> None:
        session.close()
        closed.set()

    session.submit([image(1)]).add_done_callback(close)
    assert closed.wait(60)


def test_no_thread_and_no_process_is_left(device: Device, onnx_model: Path) -> None:
    before = set(threading.enumerate())
    session = open_device(device, onnx_model)
    session.close()
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()]
    assert left == []


def test_file_that_is_no_model(device: Device, tmp_path: Path) -> None:
    text = tmp_path / "notes.tflite"
    text.write_text("shopping list")
    with pytest.raises(ModelError, match=f"^bench: {text}"):
        open_device(device, text)


def test_wrong_option_is_the_users(device: Device, onnx_model: Path) -> None:
    with pytest.raises(UsageError, match="option 'speed'"):
        open_device(device, onnx_model, options={"speed": 11})


def test_options_given_win_over_the_devices(device: Device, onnx_model: Path) -> None:
    two = device.model_copy(update={"options": {"threads": 2}})
    session = open_device(two, onnx_model)
    session.close()
    assert session.model.runtime["threads"] == 2
    session = open_device(two, onnx_model, options={"threads": 3})
    session.close()
    assert session.model.runtime["threads"] == 3


def test_extension_of_no_runtime(device: Device, onnx_model: Path) -> None:
    renamed = onnx_model.rename(onnx_model.with_suffix(".Model File"))
    with pytest.raises(UsageError, match=r"\.tflite, \.lite"):
        open_device(device, renamed)
    open_device(device, renamed, runtime="onnx").close()
    open_device(device.model_copy(update={"runtime": "onnx"}), renamed).close()
    with pytest.raises(UsageError, match="called 'caffe'"):
        open_device(device, renamed, runtime="caffe")


@pytest.mark.parametrize("folder", ["models", "agents"])
def test_damaged_cached_file_is_uploaded_again(folder, device, onnx_model, pair_input) -> None:
    open_device(device, onnx_model).close()
    (file,) = Path(device.cache, folder).iterdir()
    whole = file.read_bytes()
    file.write_bytes(bytes(len(whole)))
    told: list[str] = []
    session = open_device(device, onnx_model, progress=told.append)
    session.configure(pair_input, "total")
    assert session.submit([image(255)]).result().outputs[0] == pytest.approx(16.0)
    session.close()
    assert file.read_bytes() == whole
    assert len(told) == 1
    assert told[0].startswith(
        "uploading sum.onnx to bench" if folder == "models" else "uploading the agent to bench"
    )


def test_old_python_is_refused_before_anything_is_uploaded(old_python, device, onnx_model) -> None:
    with pytest.raises(DevicePythonError, match=r"needs 3\.8"):
        open_device(device.model_copy(update={"python": old_python}), onnx_model)
    assert not [path for path in Path(device.cache).rglob("*") if path.is_file()]


def test_fingerprint_is_the_same_next_time_and_changes_with_the_options(device, onnx_model) -> None:
    digests = []
    for threads in (1, 1, 2):
        session = open_device(device, onnx_model, options={"threads": threads})
        session.close()
        digests.append(fingerprint_digest(session.fingerprint))
    assert digests[0] == digests[1] != digests[2]


def test_local_device_needs_no_ssh_library() -> None:
    script = (
        "import sys, edgeflare.devices as d; d.connect(d.LOCAL).close(); "
        "print('paramiko' in sys.modules, hasattr(d, 'trust_host_key'), 'paramiko' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", "True", "True"], done.stderr
    assert LOCAL.transport == "local"
