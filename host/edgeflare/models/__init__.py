"""The original model on the host, and the inputs and outputs of both models as stated by the user or their files."""

from edgeflare.models.audio_options import audio_input
from edgeflare.models.decoder_options import (
    AbsolutePath,
    DecoderOptions,
    text_output,
)
from edgeflare.models.input_options import InputOptions, Pixels, known_of, resolve_input
from edgeflare.models.labels import check_index, has_one_value, is_index
from edgeflare.models.original import OriginalModel
from edgeflare.models.outputs import (
    OutputKind,
    OutputReader,
    detect_kind,
    largest_sum_error,
    output_classes,
    unread,
)
from edgeflare_agent.audio_spec import AudioSpec, Spec
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.image_spec import InputSpec, TensorInfo
from edgeflare_agent.preprocess import prepare

__all__ = [
    "AbsolutePath",
    "AudioSpec",
    "DecoderOptions",
    "InputOptions",
    "InputSpec",
    "OriginalModel",
    "OutputKind",
    "OutputReader",
    "Pixels",
    "RawOutput",
    "Spec",
    "TensorInfo",
    "audio_input",
    "check_index",
    "detect_kind",
    "has_one_value",
    "is_index",
    "known_of",
    "largest_sum_error",
    "output_classes",
    "prepare",
    "resolve_input",
    "text_output",
    "unread",
]
