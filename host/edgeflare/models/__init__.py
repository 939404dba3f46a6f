"""The original model on the host; inputs and outputs of both models."""

from edgeflare._internal.toml import AbsolutePath
from edgeflare.answers.detections.formats import (
    DetectionReader,
    DetectorOptions,
    GridOptions,
    choose_format,
    complete_options,
    infer_format,
)
from edgeflare.answers.outputs import AnswerReader, DecoderOptions, OutputReader, as_output
from edgeflare.models.audio_input import audio_input
from edgeflare.models.fixed_inputs import SEED_NAMES, choose_input
from edgeflare.models.image_input import VALUE_FIELDS, InputOptions, Pixels, known_of, resolve_input
from edgeflare.models.original import OriginalModel
from edgeflare.models.usual_inputs import stated_options
from edgeflare_agent.audio_spec import AudioSpec, Spec, spec_from_json
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.image_spec import InputSpec, TensorInfo, is_batch_open
from edgeflare_agent.preprocess import prepare

__all__ = [
    "ONE_INPUT",
    "SEED_NAMES",
    "VALUE_FIELDS",
    "AbsolutePath",
    "AnswerReader",
    "AudioSpec",
    "DecoderOptions",
    "DetectionReader",
    "DetectorOptions",
    "GridOptions",
    "InputOptions",
    "InputSpec",
    "OriginalModel",
    "OutputReader",
    "Pixels",
    "RawOutput",
    "Spec",
    "TensorInfo",
    "as_output",
    "audio_input",
    "choose_format",
    "choose_input",
    "complete_options",
    "infer_format",
    "is_batch_open",
    "known_of",
    "prepare",
    "resolve_input",
    "spec_from_json",
    "stated_options",
]
