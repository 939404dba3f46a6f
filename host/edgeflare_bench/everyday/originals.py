"""The originals: small networks of many architectures that are trained here, once for each folder."""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare._internal.files import replacing
from edgeflare.answers import SCORES
from edgeflare.errors import UsageError
from edgeflare.models import ONE_INPUT
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import prepare
from edgeflare_bench.everyday.networks import NETWORKS
from edgeflare_bench.everyday.pictures import CLIP, DATA, RATE, Examples, Truth
from edgeflare_bench.everyday.records import EverydayOriginal, input_spec
from edgeflare_bench.everyday.tasks import (
    CLASSIFICATION,
    DENSE,
    DETECTION,
    EMBEDDING,
    LOSSES,
    Task,
)

SEED = 20_261_130
_SAMPLES, _CALIBRATION = 64, 256
_BATCH = 64
_UNIT = {"scale": "1/255"}
_IMAGENET = {**_UNIT, "mean": "0.485,0.456,0.406", "std": "0.229,0.224,0.225"}
_SIGNED = {"mean": "127.5", "std": "127.5"}
_LOG_MEL = {
    "front_end": "log-mel",
    "rate": str(RATE),
    "samples": str(CLIP),
    "window": "256",
    "stride": "128",
    "fft": "256",
    "spectrum": "power",
    "bands": "32",
    "low_hz": "60",
    "high_hz": "3800",
    "mel_scale": "htk",
    "mel_slopes": "hertz",
    "log": "ln",
    "log_offset": "1e-6",
    "axes": "frames-bands",
    "mean": "-4",
    "std": "4",
}


@dataclass(frozen=True)
class Plan:
    """How an original is trained.

    `data` of images of `size`, or clips of so many samples, prepared as `input` says into `shape`. The
    network has the original's name. `is_softmax`: scores are probabilities. `names`: those of the
    outputs. `is_fused`: batch normalisation is part of the convolutions.
    """

    data: str
    size: int
    shape: tuple[int, ...]
    input: Mapping[str, str]
    task: Task = CLASSIFICATION
    loss: str = "classes"
    steps: int = 450
    rate: float = 3e-3
    is_softmax: bool = False
    names: tuple[str, ...] = ("scores",)
    is_fused: bool = True
    given: GivenInputs = ONE_INPUT


_PARTS = GivenInputs(("left", "right"))
PLANS: Mapping[str, Plan] = {
    "plain": Plan("shapes", 32, (1, 3, 32, 32), _UNIT, is_softmax=True, steps=700),
    "residual": Plan("shapes", 32, (1, 3, 32, 32), _IMAGENET, is_fused=False),
    "separable": Plan(
        *("textures", 64, (1, 3, 48, 48), {**_SIGNED, "resize": "bilinear"}), is_softmax=True
    ),
    "squeeze": Plan("shapes", 40, (1, 3, 40, 40), _IMAGENET),
    "transformer": Plan("textures", 32, (1, 3, 32, 32), _SIGNED, rate=2e-3),
    "mixer": Plan("textures", 32, (1, 3, 32, 32), {"scale": "1"}, is_softmax=True, rate=2e-3),
    "branches": Plan(
        *("shapes", 32, (1, 3, 32, 32)),
        {"color": "BGR", "mean": "103.9,116.8,123.7", "std": "58"},
        steps=900,
    ),
    "dense": Plan("textures", 32, (1, 32, 32, 3), {**_UNIT, "layout": "HWC"}, is_softmax=True),
    "lstm": Plan("digits", 28, (1, 1, 28, 28), _UNIT, is_softmax=True, steps=700),
    "gru": Plan("digits", 28, (1, 1, 28, 28), {"mean": "100", "std": "80"}, steps=700),
    "waveform": Plan(
        *("tones", CLIP, (1, CLIP)),
        {"front_end": "waveform", "rate": str(RATE), "samples": str(CLIP)},
    ),
    "spectrum": Plan("tones", CLIP, (1, 1, 30, 32), _LOG_MEL, is_softmax=True),
    "grid_detector": Plan(
        *("scenes", 64, (1, 3, 64, 64), _UNIT, DETECTION, "grid"),
        names=("detections",),
        steps=800,
        rate=5e-3,
    ),
    "anchor_detector": Plan(
        *("scenes", 64, (1, 3, 64, 64), {"mean": "127", "std": "128"}, DETECTION, "anchors"),
        names=("boxes", "scores"),
        steps=2000,
        rate=5e-3,
    ),
    "segmenter": Plan("maps", 48, (1, 3, 48, 48), _UNIT, DENSE, names=("map",)),
    "embedder": Plan(
        *("shapes", 32, (1, 3, 32, 32), _IMAGENET, EMBEDDING, "embedding"),
        names=("vector",),
        steps=1500,
    ),
    "shuffle": Plan("colours", 32, (1, 3, 32, 32), _UNIT, is_softmax=True),
    "stereo": Plan("stereo", 32, (1, 3, 32, 64), _SIGNED, given=_PARTS),
}
"""The originals by name."""


def open_everyday(name: str, folder: Path) -> EverydayOriginal:
    """Open an original that is kept in a folder; it is trained first where it isn't there.

    On one machine it is always the same. Training takes some 10 s and needs the extra `torch`. Beside
    the ONNX file lies PyTorch's exported program, ``.pt2``. Raises UsageError for an unknown name, and where PyTorch is missing.
    """
    if name not in PLANS:
        raise UsageError(f"there is no original {name!r}; there are {', '.join(PLANS)}")
    plan, path = PLANS[name], Path(folder) / f"{name}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        network = _trained(name)
        for suffix, export in ((".pt2", _as_program), (".onnx", _as_onnx)):
            with replacing(path.with_suffix(suffix)) as file:
                file.write(export(name, network))
    natural = examples(name, "samples", _SAMPLES)
    return EverydayOriginal(
        name,
        extras.onnx().load_model(path),
        path,
        list(natural.samples),
        [int(value) for value in natural.truth] if plan.task.kind is SCORES else (),
        plan.input,
        plan.task,
        tensors(name, examples(name, "calibration", _CALIBRATION).samples),
        plan.given,
    )


_SETS = ("train", "samples", "calibration", "held out")


def examples(name: str, purpose: str, count: int) -> Examples:
    """Return an original's examples to "train" with, its "samples", of its "calibration", or "held out"."""
    plan = PLANS[name]
    rng = np.random.default_rng([SEED, _SETS.index(purpose), list(PLANS).index(name)])
    return DATA[plan.data](rng, count, plan.size)


def tensors(name: str, samples: Sequence[Any] | NDArray[Any]) -> NDArray[np.float32]:
    """Return samples as the original takes them, [N, ...] without the axis of the batch."""
    plan = PLANS[name]
    spec = input_spec(TensorInfo("input", plan.shape, "float32"), plan.input)
    return np.stack([prepare(sample, spec)[0] for sample in samples])


def parts(name: str, batch: Any) -> list[Any]:
    """Return what each input of the original is given of a batch, an array or a PyTorch tensor."""
    count = PLANS[name].given.parts
    width = batch.shape[-1] // count
    return [batch[..., width * at : width * (at + 1)] for at in range(count)]


def _trained(name: str) -> Any:
    """Return the network, trained on one thread from a seed."""
    torch, plan = extras.torch(what="training an original"), PLANS[name]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            network = NETWORKS[name]()
            drawn = examples(name, "train", 4000)
            _train(name, network, tensors(name, drawn.samples), drawn.truth)
    finally:
        torch.set_num_threads(threads)
    if plan.is_softmax:
        network = torch.nn.Sequential(network, torch.nn.Softmax(-1))
    return network.eval()


def _train(name: str, network: Any, natural: NDArray[np.float32], answers: Truth) -> None:
    torch, plan = extras.torch(), PLANS[name]
    inputs, truth = torch.from_numpy(natural), torch.from_numpy(answers)
    loss: Callable[..., Any] = LOSSES[plan.loss]
    optimiser = torch.optim.AdamW(network.parameters(), plan.rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, plan.rate, total_steps=plan.steps)
    network.train()
    for _ in range(plan.steps):
        drawn = torch.randint(len(inputs), (_BATCH,))
        value = loss(network(*parts(name, inputs[drawn])), truth[drawn])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()


def _as_program(name: str, network: Any) -> bytes:
    torch, file = extras.torch(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of recurrent layers' weights
        program = torch.export.export(network, tuple(parts(name, torch.zeros(PLANS[name].shape))))
    torch.export.save(program, file)
    return file.getvalue()


def _as_onnx(name: str, network: Any) -> bytes:
    torch, plan, file = extras.torch(), PLANS[name], io.BytesIO()
    mode = torch.onnx.TrainingMode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one
        torch.onnx.export(
            network,
            tuple(parts(name, torch.zeros(plan.shape))),
            file,
            dynamo=False,
            opset_version=17,
            input_names=list(plan.given.names) or ["clip" if plan.data == "tones" else "image"],
            output_names=list(plan.names),
            training=mode.EVAL if plan.is_fused else mode.PRESERVE,
        )
    return file.getvalue()
