"""Options for a speech recogniser whose file does not say how its outputs are decoded to text."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from edgeflare import toml
from edgeflare.errors import ModelError, UsageError
from edgeflare_agent import decoding
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.image_spec import TensorInfo

_LONGEST = 1_000_000
"""Bytes of a vocabulary as JSON, which is sent to the device in a frame's header."""


AbsolutePath: TypeAlias = Annotated[
    Path, AfterValidator(lambda path: toml.expanded(path).absolute())
]


class DecoderOptions(BaseModel):
    """How outputs become text, as `edgeflare_agent.decoding.Decoder` has it.

    `vocabulary`: a text file (UTF-8) with a token a line, the first being token 0, or a ``.json`` with a list of
    texts or an object of texts and their numbers. `kind` "ctc": greedy, without `blank`; "tokens": the model itself
    decodes. `space` is the character for a space within a token; `bytes`: the tokens are in GPT-2's alphabet;
    `text_tokens`: control tokens begin there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["ctc", "tokens"] = "ctc"
    vocabulary: AbsolutePath
    blank: int = Field(default=0, ge=0)
    space: str | None = Field(default=None, min_length=1)
    bytes: bool = False
    text_tokens: int | None = Field(default=None, ge=0)

    def decoder(self) -> decoding.Decoder:
        """Return the decoder with its vocabulary. Raises UsageError for a file that is no vocabulary."""
        words = self._words()
        if len(json.dumps(words)) > _LONGEST:
            raise UsageError(
                f"vocabulary {self.vocabulary} is too long to be sent to a device ({len(words)} tokens, more than "
                f"{_LONGEST // 1000} kB): state it in the model's own file, under the metadata key edgeflare.decoder"
            )
        if self.space is not None and not any(self.space in word for word in words):
            raise UsageError(
                f"no token of the vocabulary {self.vocabulary} has the {self.space!r} that is stated as `space`: state "
                "the symbol that stands for a space there, or leave it out"
            )
        try:
            return decoding.Decoder.from_json(
                self.model_dump(exclude={"vocabulary"}) | {"vocabulary": words}
            )
        except agent_errors.RequestError as error:
            raise UsageError(f"vocabulary {self.vocabulary}: {error}") from error

    def _words(self) -> list[str]:
        try:
            text = self.vocabulary.read_text(encoding="utf-8-sig")
            if self.vocabulary.suffix.lower() == ".json":
                return _tokens(json.loads(text))
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise UsageError(
                f"vocabulary {self.vocabulary} can't be read: {why[0].lower()}{why[1:]}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"vocabulary {self.vocabulary} can't be read: {error}") from error
        lines = text.split("\n")
        return lines[:-1] if lines[-1] == "" else lines


def text_output(
    kind: str, outputs: Sequence[TensorInfo], name: str | None, whose: str
) -> TensorInfo:
    """Return the output that a decoder of this kind reads, the one of this `name` if it is stated. Raises ModelError."""
    try:
        return decoding.text_output(kind, outputs, name)
    except agent_errors.ModelError as error:
        raise ModelError(f"{whose}: {error}") from error


def _tokens(data: Any) -> list[str]:
    """Return the tokens in the order of their numbers. Raises ValueError for other JSON."""
    if isinstance(data, dict) and all(type(number) is int for number in data.values()):
        tokens = {number: word for word, number in data.items()}
        if sorted(tokens) == list(range(len(data))):
            return [tokens[number] for number in range(len(tokens))]
    elif isinstance(data, list) and all(isinstance(word, str) for word in data):
        return data
    raise ValueError("it is neither a list of texts nor an object that numbers texts from 0")
