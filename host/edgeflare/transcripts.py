"""The words of transcripts by their documented names; they stand in `edgeflare.answers.transcripts`."""

from edgeflare._internal.moved import names_of

__getattr__, __dir__, __path__ = names_of(__name__, "edgeflare.answers.transcripts")
