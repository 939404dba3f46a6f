"""The sections of a campaign's configuration that name the models and the seeds."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from edgeflare._internal import plugins
from edgeflare._internal.flags import KINDS_OF_DECODERS, Flag
from edgeflare.devices.runtimes import RuntimeName
from edgeflare.models import AbsolutePath, DecoderOptions, DetectorOptions, InputOptions, Pixels

PRIORITIES = ("margin", "gini", "drift")
"""What seeds are ordered by without a plug-in: see `edgeflare.campaign.priority`."""


class Section(BaseModel):
    """A table of a configuration file: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_KEYS_OF_DETECTORS = DetectorOptions.model_fields.keys() - DecoderOptions.model_fields.keys()


def _kind_of_decoder(value: Any) -> str:
    if isinstance(value, Mapping):
        usual = "ctc" if _KEYS_OF_DETECTORS.isdisjoint(value) else "auto"
        of_text = value.get("kind", usual) in ("ctc", "tokens")
    else:
        of_text = isinstance(value, DecoderOptions)
    return KINDS_OF_DECODERS[0 if of_text else 1]


StatedOutput: TypeAlias = Literal[
    "auto", "probabilities", "logits", "sigmoid", "sigmoid-logits", "label", "transcript"
]
"""What outputs of classes or text are, as far as it is stated."""


class ModelConfig(Section):
    """One model: its file, how it is run, and what the file doesn't say of input and output."""

    path: Annotated[
        AbsolutePath,
        Flag(
            "--original",
            "The original model: .onnx, .tflite, .pt2, .pt or .keras.",
            only_in=("original",),
            example="original.onnx",
        ),
        Flag("--deployed", "The deployed model.", only_in=("deployed",), example="deployed.tflite"),
    ]
    runtime: RuntimeName | None = Field(
        default=None,
        description="tflite, onnx, tensorrt, torch, keras or executorch; by default the device's, "
        "or by the file's extension.",
        examples=["onnx"],
    )
    options: Annotated[
        dict[str, Any],
        Flag(
            "--runtime-option",
            "For the deployed model's runtime: threads=4, delegate=false (or a library), kernels=reference, "
            "'providers=[\"CUDAExecutionProvider\"]', allow_fallback=true. Lists and objects are "
            "JSON. May be repeated.",
            only_in=("deployed",),
        ),
    ] = Field(
        default_factory=dict, description="Options of the runtime.", examples=[{"threads": 1}]
    )
    input: Annotated[
        InputOptions,
        Flag(
            "--input",
            "What the files don't tell of all models' inputs: scale=1/255, mean=R,G,B, "
            "std=R,G,B, color=BGR, layout=CHW, size=H,W, resize=bilinear (or nearest, "
            "bilinear-antialias, area), orientation=rotate-90, clip=LEAST,MOST; of audio front_end=whisper, mlperf-tiny-kws or waveform, "
            "rate=16000, samples=16000. May be repeated.",
            each=True,
        ),
    ] = Field(
        default=InputOptions(),
        description="What the file doesn't tell: color, layout, size, resize, orientation, and scale, mean, std "
        "of pixels, (pixel * scale - mean) / std, and clip; of audio front_end, rate, samples.",
        examples=[{"scale": "1/255", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}],
    )
    input_name: Annotated[
        str | None,
        Flag(
            "--input-name",
            "Which input the samples become, by its name, where all models have several, or which "
            "ones, with commas, take pictures beside each other; the others are given by "
            "--fixed-inputs.",
            metavar="NAME",
            each=True,
        ),
    ] = Field(
        default=None,
        description="Which input the samples become, where the model has several; by default the "
        "only one that is not fixed. Several, with commas, take pictures of one size: a sample has "
        "them beside each other, in this order.",
        examples=["image"],
    )
    fixed_inputs: Annotated[
        AbsolutePath | None,
        Flag(
            "--fixed-inputs",
            "What the other inputs of all models are given, where they have several: an .npz with "
            "an array by input name, or with rows for the seeds that its array `seeds` names.",
            metavar="FILE",
            each=True,
        ),
    ] = Field(
        default=None,
        description="An .npz with an array by input name, in real units, for each input of the "
        "model that samples don't become. With an array `seeds` of the seeds' names, an array with "
        "one more axis, the first, has a row for each of them.",
        examples=["fixed.npz"],
    )
    output: Annotated[
        StatedOutput,
        Flag(
            "--output",
            "All models' outputs: auto, probabilities, logits, transcript, sigmoid (a probability "
            "of each class for itself, or a single one) or sigmoid-logits (before the sigmoid).",
            each=True,
            deployed="; label: it returns a class index and no scores",
        ),
    ] = Field(
        default="auto",
        description="auto (by the output's type and the seeds), probabilities, logits, transcript, "
        "sigmoid (a probability of each class for itself, or a single one, that of class 1 of "
        "two), sigmoid-logits (before the sigmoid) or, the deployed model only, label (a class index, no "
        "scores).",
    )
    output_name: Annotated[
        str | None,
        Flag(
            "--output-name",
            "Which output counts, by its name, where all models have several.",
            metavar="NAME",
            each=True,
        ),
    ] = Field(
        default=None,
        description="Which output counts, where the model has several.",
        examples=["logits"],
    )
    decoder: Annotated[
        Annotated[
            Annotated[DecoderOptions, Tag(KINDS_OF_DECODERS[0])]
            | Annotated[DetectorOptions, Tag(KINDS_OF_DECODERS[1])],
            Discriminator(_kind_of_decoder),
        ]
        | None,
        Flag(
            "--decoder",
            "How outputs become answers, where all models' files don't tell. Of models that return "
            "text: kind=ctc, vocabulary=FILE (a token a line, or .json), blank=0, space=|. Of "
            "detectors: kind=yolo (v8, v11), yolo-objectness (v5, v7), end-to-end, ssd, ssd-raw, "
            "fastestdet or grid, outputs=NAME,NAME, box=xyxy, units=pixels or shares, "
            "activation=sigmoid, background=0. May be repeated.",
        ),
    ] = Field(
        default=None,
        description="How outputs become text or boxes, where the file doesn't tell.",
        examples=[{"kind": "ctc", "vocabulary": "tokens.txt", "space": "|"}],
    )
    repair: Annotated[AbsolutePath | None, Flag("--repair", only_in=("deployed",))] = Field(
        default=None,
        description="A file of edgeflare repair: what replaces the deployed model's answers on the "
        "device.",
        examples=["drepair.npz"],
    )


class SeedsConfig(Section):
    """The seed inputs, and how they are brought to the model's size and rate."""

    path: Annotated[AbsolutePath, Flag("--seeds", example="seeds")] = Field(
        description="Folder of images or audio, one file, or an .npz."
    )
    size: tuple[Pixels, Pixels] | None = Field(
        default=None, description="Height and width; by default the original's input size."
    )
    resize: Annotated[
        Literal["nearest", "bilinear", "bilinear-antialias", "area", "bicubic", "crop", "letterbox"]
        | None,
        Flag("--resize"),
    ] = Field(
        default=None,
        description="For seeds of another size: nearest, bilinear, bilinear-antialias (as PIL and "
        "torchvision), area, bicubic, crop or letterbox (with grey borders, as YOLO).",
        examples=["bilinear"],
    )
    cut: Annotated[Literal["first", "windows"] | None, Flag("--cut", metavar="RULE")] = Field(
        default=None,
        description="For audio longer than the model takes: first (its beginning) or windows (one "
        "piece after the other, each a seed; --limit takes one of each recording first).",
        examples=["windows"],
    )
    resample: Annotated[bool, Flag("--resample-audio")] = Field(
        default=False, description="Resample audio of other rates."
    )
    labels: Annotated[AbsolutePath | None, Flag("--labels")] = Field(
        default=None,
        description="Maps class folders to class numbers (JSON, TOML, text).",
        examples=["labels.json"],
    )
    limit: Annotated[int | None, Flag("--limit")] = Field(
        default=None, ge=1, description="Only the first seeds, at most this number.", examples=[100]
    )
    prioritise: Annotated[
        str | None,
        plugins.known_name("priority", PRIORITIES),
        Flag("--prioritise", metavar="MEASURE", names="priority"),
    ] = Field(
        default=None,
        description="Take the seeds by how promising they are and not as they come, and with a limit only "
        "the most promising ones: margin (the original's top-1 minus top-2 probability, smallest "
        "first: a good choice), gini, surprise, rarity, or drift (by the survey's answers: the "
        "searches alone). Doesn't change what is found from a seed.",
        examples=["margin"],
    )
