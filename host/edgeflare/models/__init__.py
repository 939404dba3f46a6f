"""The original model on the host; inputs and outputs of both models."""

from edgeflare._internal.toml import AbsolutePath
from edgeflare.answers.detections.formats import (
    DetectionReader,
    DetectorOptions,
    GridOptions,
    InferredFormat,
    check_format,
    choose_format,
    class_names,
    complete_options,
    infer_format,
    keep_anchors,
)
from edgeflare.answers.interface import ChosenInput
from edgeflare.answers.outputs import (
    SINGLE_KINDS,
    AnswerReader,
    DecoderOptions,
    OutputKind,
    OutputReader,
    as_output,
    check_index,
    detect_kind,
    has_one_value,
    is_index,
    largest_sum_error,
    output_classes,
    task_of,
    text_output,
)
from edgeflare.models.audio_input import audio_input
from edgeflare.models.fixed_inputs import SEED_NAMES, choose_input
from edgeflare.models.image_input import InputOptions, Pixels, known_of, resolve_input
from edgeflare.models.original import OriginalModel
from edgeflare.models.usual_inputs import stated_options
from edgeflare_agent.audio_spec import AudioSpec, Spec, spec_from_json
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT
from edgeflare_agent.decoding import RawOutput, decoder_in
from edgeflare_agent.image_spec import InputSpec, TensorInfo, is_batch_open
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.repair import Repair

__all__ = [
    "ONE_INPUT",
    "SEED_NAMES",
    "SINGLE_KINDS",
    "AbsolutePath",
    "AnswerReader",
    "AudioSpec",
    "ChosenInput",
    "DecoderOptions",
    "DetectionReader",
    "DetectorOptions",
    "GridOptions",
    "InferredFormat",
    "InputOptions",
    "InputSpec",
    "OriginalModel",
    "OutputKind",
    "OutputReader",
    "Pixels",
    "RawOutput",
    "Repair",
    "Spec",
    "TensorInfo",
    "as_output",
    "audio_input",
    "check_format",
    "check_index",
    "choose_format",
    "choose_input",
    "class_names",
    "complete_options",
    "decoder_in",
    "detect_kind",
    "has_one_value",
    "infer_format",
    "is_batch_open",
    "is_index",
    "keep_anchors",
    "known_of",
    "largest_sum_error",
    "output_classes",
    "prepare",
    "resolve_input",
    "spec_from_json",
    "stated_options",
    "task_of",
    "text_output",
]
