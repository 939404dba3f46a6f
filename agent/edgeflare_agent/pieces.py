"""Tokens become pieces of text: a letter that several tokens share belongs to one piece."""

import codecs
from functools import lru_cache
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from edgeflare_agent.arrays import Array

Token = Tuple[bytes, float, float]
"""The text of a token in UTF-8, or a part of a letter's bytes; its probability; that of the best other token."""


class Decoded(NamedTuple):
    """What a recogniser heard in one sample.

    `pieces` laid end to end are the text. `scores`: float64 [pieces, 2], each piece's probability and that
    of its best alternative; NaN and infinity are kept, those of tokens without text in an empty piece.
    """

    pieces: Tuple[str, ...]
    scores: Array


def bytes_of(text: str) -> bytes:
    """Return the bytes that a text in GPT-2's alphabet stands for; other letters stand for themselves."""
    alphabet = _alphabet()
    return b"".join(alphabet.get(letter) or letter.encode("utf-8", "replace") for letter in text)


def pieces_of(tokens: Sequence[Token]) -> Decoded:
    """Return texts and scores; tokens that share a letter become one piece, wrong bytes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts: List[str] = []
    scores: List[Tuple[float, float]] = []
    group: List[Tuple[float, float]] = []
    text = ""
    for position, (data, chosen, other) in enumerate(tokens):
        text += decoder.decode(data, final=position == len(tokens) - 1)
        group.append((chosen, other))
        if not decoder.getstate()[0]:
            texts.append(text)
            scores.append(_together(group))
            text, group = "", []
    return Decoded(tuple(texts), np.array(scores, np.float64).reshape(-1, 2))


def _together(group: Sequence[Tuple[float, float]]) -> Tuple[float, float]:
    """Return the probability of all tokens, and the highest of the same with another in one place."""
    if len(group) == 1:
        return group[0]
    pairs = np.array(group, np.float64)
    others = [
        other * np.delete(pairs[:, 0], place).prod() for place, other in enumerate(pairs[:, 1])
    ]
    return float(pairs[:, 0].prod()), float(np.max(others))


@lru_cache(maxsize=1)
def _alphabet() -> Dict[str, bytes]:
    """Return GPT-2's alphabet: printable characters of Latin-1 stand for themselves, others follow from 256."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    letters = [chr(byte) for byte in plain] + [chr(256 + place) for place in range(len(rest))]
    return {letter: bytes([byte]) for letter, byte in zip(letters, plain + rest)}
