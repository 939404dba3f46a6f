"""Outputs of models that return text become that text."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare_agent.decoding import Decoded, Decoder, bytes_of, decoder_in
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.image_spec import TensorInfo

LETTERS = ("_", "a", "b", "|")
CTC = Decoder("ctc", LETTERS, space="|")
FRAMES = TensorInfo("logits", (1, None, 4), "float32")
TOKENS = (TensorInfo("tokens", (None,), "int64"), TensorInfo("scores", (None, 2), "float32"))


def heard(frames: Any, decoder: Decoder = CTC, tensor: TensorInfo = FRAMES) -> Decoded:
    return decoder.decode({"logits": np.asarray(frames)}, [tensor])


def spoken(ids: Any, scores: Any, decoder: Decoder) -> Decoded:
    outputs = {"tokens": np.array(ids, np.int64), "scores": np.array(scores, np.float32)}
    return decoder.decode(outputs, TOKENS)


def frames_of(text: str, sure: float = 4.0) -> np.ndarray:
    """Logits [1, frames, 4] with one letter best in each frame."""
    return sure * np.eye(4, dtype=np.float32)[[LETTERS.index(letter) for letter in text]][None]


def test_repeats_collapse_and_blanks_part_what_is_said_twice() -> None:
    assert heard(frames_of("__aab_b|a_")).pieces == ("a", "b", "b", " ", "a")
    assert heard(frames_of("____")).pieces == ()
    assert heard(frames_of("____")).scores.shape == (0, 2)


def test_a_letter_counts_with_its_surest_frame() -> None:
    frames = np.array([[[0, 1, 0.5, 0], [0, 3, 0, 1], [0, 2, 0, 0]]])
    powers = np.exp([0.0, 3, 0, 1])
    decoded = heard(frames)
    assert decoded.pieces == ("a",)
    np.testing.assert_allclose(decoded.scores, [[powers[1], powers[3]]] / powers.sum(), rtol=1e-15)


def test_logits_and_log_probabilities_and_probabilities_say_the_same() -> None:
    logits = np.random.default_rng(5).normal(0, 3, (1, 40, 4))
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = heard(logits)
    for same in (np.log(probabilities), probabilities):
        assert heard(same).pieces == expected.pieces
        np.testing.assert_allclose(heard(same).scores, expected.scores, rtol=1e-12)


def test_an_impossible_symbol_is_no_fault() -> None:
    certain = np.where(frames_of("ab") > 0, 0.0, -np.inf)
    decoded = heard(certain)
    assert decoded.pieces == ("a", "b")
    assert decoded.scores.tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_kept_even_where_nothing_is_reported(bad: float) -> None:
    frames = frames_of("a__b")
    frames[0, 1:3, 2] = bad
    decoded = heard(frames)
    assert decoded.pieces == ("a", "", "b")
    assert np.isnan(decoded.scores).tolist() == [[False] * 2, [True] * 2, [False] * 2]


def test_quantised_outputs_are_read_as_the_real_numbers_they_stand_for() -> None:
    logits = TensorInfo("logits", (1, None, 4), "int8", (0.5, -10))
    stored = (frames_of("ab_") / 0.5 - 10).astype(np.int8)
    np.testing.assert_array_equal(heard(stored, CTC, logits).scores, heard(frames_of("ab")).scores)


def test_quantised_probabilities_whose_sum_is_a_little_off_are_probabilities() -> None:
    tensor = TensorInfo("logits", (1, None, 4), "uint8", (1 / 256, 0))
    decoded = heard(np.array([[[2, 230, 20, 3]]], np.uint8), CTC, tensor)
    assert decoded.scores.tolist() == [[230 / 256, 20 / 256]]


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (3, 1, 4), (1, 1, 3, 4)])
def test_axes_of_one_make_no_difference(shape: tuple[int, ...]) -> None:
    assert heard(frames_of("a_b").reshape(shape)).pieces == ("a", "b")


@pytest.mark.parametrize("shape", [(4,), (1, 3, 5), (2, 3, 4)])
def test_an_output_of_another_form_is_reported_in_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="4 scores"):
        heard(np.zeros(shape, np.float32))


def test_the_output_is_the_one_named_or_logits() -> None:
    tensors = [TensorInfo("hidden", (1, None, 9), "float32"), FRAMES]
    CTC.check_outputs(tensors)
    CTC.check_outputs([FRAMES._replace(name="other")])
    with pytest.raises(ModelError, match="hidden of"):
        CTC.check_outputs(tensors, "hidden")
    with pytest.raises(ModelError, match="output 'logits'"):
        CTC.check_outputs([tensors[0], FRAMES._replace(name="x")])
    with pytest.raises(ModelError, match="output 'scores'"):
        Decoder("tokens", LETTERS).check_outputs([TOKENS[0]])


def test_control_tokens_say_nothing() -> None:
    decoder = Decoder("tokens", (*LETTERS, "<end>"), text_tokens=4)
    decoded = spoken([[1, 2, 4, 77]], [[[0.9, 0.1], [0.8, 0.2], [1, 0], [1, 0]]], decoder)
    assert decoded.pieces == ("a", "b")
    np.testing.assert_allclose(decoded.scores, [[0.9, 0.1], [0.8, 0.2]], rtol=1e-6)
    assert decoded.scores.dtype == np.float64


def test_a_control_token_that_is_not_finite_is_reported_all_the_same() -> None:
    decoded = spoken([1, 3], [[0.9, 0.1], [np.nan, 0]], Decoder("tokens", LETTERS, text_tokens=3))
    assert decoded.pieces == ("a", "")
    assert np.isnan(decoded.scores[1, 0])


def test_nothing_said() -> None:
    assert spoken([], np.empty((0, 2)), Decoder("tokens", LETTERS)).pieces == ()


def test_tokens_that_share_a_letter_become_one_piece() -> None:
    decoder = Decoder("tokens", ("x", "\u00c3", "\u00a9y"), is_bytes=True)
    decoded = spoken([0, 1, 2], [[0.5, 0.25], [0.5, 0.25], [0.75, 0.125]], decoder)
    assert decoded.pieces == ("x", "\u00e9y")
    assert decoded.scores.tolist() == [[0.5, 0.25], [0.5 * 0.75, 0.25 * 0.75]]


def test_bytes_that_are_no_text_become_the_replacement_character() -> None:
    decoder = Decoder("tokens", ("x", "\u00c3"), is_bytes=True)
    assert "".join(spoken([1, 0, 1], [[1, 0]] * 3, decoder).pieces) == "\ufffdx\ufffd"


ALPHABET = {
    bytes_of(chr(code))[:1]: chr(code)
    for code in reversed(range(0x21, 0x144))
    if len(bytes_of(chr(code))) == 1
}


@given(st.text(), st.lists(st.integers(1, 3)))
def test_any_text_comes_through_however_its_bytes_are_cut(text: str, cuts: list[int]) -> None:
    letters = [ALPHABET[bytes([byte])] for byte in text.encode()]
    tokens = []
    while letters:
        size = cuts.pop() if cuts else 1
        tokens.append("".join(letters[:size]))
        letters = letters[size:]
    decoder = Decoder("tokens", (*tokens, "x"), is_bytes=True)
    decoded = spoken(range(len(tokens)), [[0.5, 0.5]] * len(tokens), decoder)
    assert "".join(decoded.pieces) == text
    assert len(decoded.scores) == len(decoded.pieces)
    assert "" not in decoded.pieces


@pytest.mark.parametrize(
    ("ids", "scores"),
    [([[1, 2], [1, 2]], np.zeros((4, 2))), ([1, 2], np.zeros((2, 3))), ([1, 2], np.zeros((1, 2)))],
)
def test_tokens_and_scores_that_do_not_fit(ids: Any, scores: Any) -> None:
    with pytest.raises(ModelError, match="2 probabilities"):
        spoken(ids, scores, Decoder("tokens", LETTERS))


@pytest.mark.parametrize("token", [-1, 4])
def test_a_token_that_the_vocabulary_does_not_have(token: int) -> None:
    with pytest.raises(ModelError, match=f"token {token}"):
        spoken([token], [[1, 0]], Decoder("tokens", LETTERS))


def test_exp_is_exp() -> None:
    values = np.concatenate([-np.logspace(-12, 2.8, 500), [0.0, -709, -1e308]])
    logits = np.stack([np.zeros_like(values), values], axis=-1)[None]
    expected = np.exp(values) / (1 + np.exp(values))
    tensor = TensorInfo("logits", (1, None, 2), "float64")
    single = [
        heard(logits[:, [n]], Decoder("ctc", ("a", "_"), blank=1), tensor)
        for n in range(len(values))
    ]
    np.testing.assert_allclose(
        [one.scores[0, 1] for one in single], expected, rtol=1e-15, atol=1e-300
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "beam"}, "tokens, ctc"), ({"vocabulary": "abc"}, "vocabulary must"),
        ({"vocabulary": []}, "vocabulary must"), ({"vocabulary": [1]}, "vocabulary must"),
        ({"blank": 4}, "token, 0"), ({"blank": True}, "blank must"), ({"space": ""}, "space must"),
        ({"bytes": 1}, "bytes must"), ({"text_tokens": 5}, "vocabulary's 4"),
        ({"beam": 3}, "'beam'"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(change: dict[str, Any], sentence: str) -> None:
    right = {"kind": "ctc", "vocabulary": list(LETTERS)}
    assert Decoder.from_json(right).vocabulary == LETTERS
    with pytest.raises(RequestError, match=sentence):
        Decoder.from_json({**right, **change})


def test_a_decoder_travels_and_is_identified_without_its_vocabulary() -> None:
    decoder = Decoder("tokens", LETTERS, is_bytes=True, text_tokens=3)
    assert Decoder.from_json(json.loads(json.dumps(decoder.to_json()))) == decoder
    assert decoder.describe()["tokens"] == 4
    assert "vocabulary" not in decoder.describe()
    assert decoder.describe() != decoder._replace(vocabulary=("_", "b", "a", "|")).describe()


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"kind": "ctc"}', "[" * 100_000, '{"a":' * 100_000]
)
def test_metadata_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"metadata 'edgeflare\.decoder'"):
        decoder_in({"edgeflare.decoder": text}, "m.onnx")


def test_most_files_have_no_decoder() -> None:
    assert decoder_in({"edgeflare.input": "{}"}, "m.onnx") is None


PPOCR = {"character": "a\nb\n\u4e2d"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("count", "vocabulary"),
    [(5, ("", "a", "b", "\u4e2d", " ")), (4, ("", "a", "b", "\u4e2d"))],
    ids=["with a space", "without"],
)
def test_the_symbols_in_a_file_of_ppocr_are_a_decoder(count, vocabulary, end) -> None:
    output = TensorInfo("softmax_0.tmp_0", (None, None, count), "float32")
    metadata = {"character": PPOCR["character"].replace("\n", end) + end}
    decoder = decoder_in(metadata, "rec.onnx", [output])
    assert (decoder.kind, decoder.vocabulary, decoder.blank) == ("ctc", vocabulary, 0)
    assert decoder.describe()["origin"] == "character"
    best = np.eye(count, dtype=np.float32)[[0, 1, 0, 1, 1, 3, count - 1]]
    decoded = decoder.decode({output.name: best[None]}, [output])
    assert "".join(decoded.pieces) == "aa\u4e2d" + " " * (count == 5)


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [TensorInfo("x", (1, None, 7), "float32")],
        [TensorInfo("x", (1, None, None), "float32")],
        [TensorInfo("x", (1, 5), "float32")],
        [TensorInfo("x", (1, None, 5), "float32"), TensorInfo("y", (1, 5), "float32")],
    ],
    ids=["none", "other count", "open count", "no frames", "two outputs"],
)
def test_symbols_that_do_not_fit_the_output_are_none(outputs: list[TensorInfo]) -> None:
    assert decoder_in(PPOCR, "rec.onnx", outputs) is None
    assert decoder_in({"character": ""}, "rec.onnx", outputs) is None
