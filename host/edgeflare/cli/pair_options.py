"""Options that name a pair of models, and seeds, and say what the files don't tell."""

from pathlib import Path
from typing import Annotated

import typer

FILES = "Models and seeds"

Pairs = list[str] | None

Original = Annotated[
    Path | None,
    typer.Option(help="The original model: .onnx or .tflite.", rich_help_panel=FILES),
]
Seeds = Annotated[
    Path | None,
    typer.Option(help="Folder of images or audio, one file, or an .npz.", rich_help_panel=FILES),
]
Input = Annotated[
    Pairs,
    typer.Option(
        "--input",
        metavar="KEY=VALUE",
        help="What the files don't tell of all models' inputs: scale=1/255, mean=R,G,B, "
        "std=R,G,B, color=BGR, layout=CHW, size=H,W, resize=bilinear (or nearest, bilinear-antialias, area); of audio front_end=whisper, "
        "mlperf-tiny-kws or waveform, rate=16000, samples=16000. May be repeated.",
        rich_help_panel=FILES,
    ),
]
OriginalInput = Annotated[
    Pairs,
    typer.Option(
        metavar="KEY=VALUE", help="The same for the original alone.", rich_help_panel=FILES
    ),
]
DeployedInput = Annotated[
    Pairs,
    typer.Option(
        metavar="KEY=VALUE", help="The same for the deployed model alone.", rich_help_panel=FILES
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        help="All models' outputs: auto, probabilities, logits or transcript.",
        rich_help_panel=FILES,
    ),
]
Decoder = Annotated[
    Pairs,
    typer.Option(
        "--decoder",
        metavar="KEY=VALUE",
        help="Of speech recognisers whose files don't tell how all models' outputs become text: "
        "kind=ctc, vocabulary=FILE (a token a line, or .json), blank=0, space=|. May be repeated.",
        rich_help_panel=FILES,
    ),
]
OriginalOutput = Annotated[
    str | None,
    typer.Option(help="The same for the original alone.", rich_help_panel=FILES),
]
DeployedOutput = Annotated[
    str | None,
    typer.Option(
        help="The same for the deployed model alone; label: it returns a class index and no scores.",
        rich_help_panel=FILES,
    ),
]
OutputName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which output counts, by its name, where all models have several.",
        rich_help_panel=FILES,
    ),
]
OriginalOutputName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The same for the original alone.", rich_help_panel=FILES),
]
DeployedOutputName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The same for the deployed model alone.", rich_help_panel=FILES
    ),
]
RuntimeOption = Annotated[
    Pairs,
    typer.Option(
        metavar="KEY=VALUE",
        help="For the deployed model's runtime: threads=4, delegate=false, kernels=reference, "
        "'providers=[\"CUDAExecutionProvider\"]', allow_fallback=true. Lists and objects are JSON. May be repeated.",
        rich_help_panel=FILES,
    ),
]
Resize = Annotated[
    str | None,
    typer.Option(
        help="For seeds of another size: nearest, bilinear, bilinear-antialias (as PIL and torchvision), area, bicubic or crop.",
        rich_help_panel=FILES,
    ),
]
Cut = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="For audio longer than the model takes: first (its beginning) or windows (one piece after "
        "the other, each a seed).",
        rich_help_panel=FILES,
    ),
]
ResampleAudio = Annotated[
    bool | None,
    typer.Option("--resample-audio", help="Resample audio of other rates.", rich_help_panel=FILES),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="Maps class folders to class numbers (JSON, TOML, text).", rich_help_panel=FILES
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Only the first so many seeds.", rich_help_panel=FILES),
]
