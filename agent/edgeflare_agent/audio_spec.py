"""How a clip of audio becomes a model's input tensor: a declarative description, sent as JSON."""

import math
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple, Union

from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import InputSpec, value_problems, values_from_json

FRONT_ENDS = ("waveform", "log-mel", "mfcc")
PEAKS = ("maximum", "magnitude")
AXES = ("frames-bands", "bands-frames")
MEL_SCALES = ("htk", "slaney")
MEL_SLOPES = ("mel", "hertz")
SPECTRA = ("magnitude", "power")
LOGS = ("ln", "log10")
DCTS = ("orthonormal", "tensorflow")
LONGEST_FFT = 8192
LONGEST_CLIP = 2**27
"""Samples; 2.3 hours at 16 kHz."""


class MelSpec(NamedTuple):
    """How samples become log-mel bands, and these coefficients; steps 1 to 7 in this order.

    1. Frames of `window` samples, `stride` apart, from the first sample on, as many as fit.
       `centered`: frame i is centred on sample i * stride, the clip being continued on both sides
       by its own reflection of fft // 2 samples; 1 + samples // stride frames for an even `fft`.
       `drop_last` leaves the last frame out.
    2. Times a periodic Hann window; zeros up to `fft` samples; discrete Fourier transform.
    3. `spectrum`: the "magnitude" of each of the fft // 2 + 1 bins, or its square, the "power".
    4. `bands` triangular filters over low_hz..high_hz, their corners evenly spaced on the mel scale
       "htk" (1127 ln(1 + f / 700)) or "slaney" (linear below 1000 Hz). `mel_slopes`: straight on
       the "mel" axis (TensorFlow) or on the "hertz" axis (librosa, torchaudio). `mel_norm`: each
       divided by half its width in Hz.
    5. `log` ("ln" or "log10") of max(value + log_offset, log_floor).
    6. `dynamic_range`: nothing is more than this below the clip's largest value, in units of the
       logarithm.
    7. `coefficients`: the number of coefficients kept, from the first on, of the cosine transform
       (DCT-II) of each frame's bands; None: the bands themselves. `dct` is "orthonormal", or
       "tensorflow", whose coefficient 0 is sqrt(2) times that.
    """

    window: int
    stride: int
    fft: int
    bands: int
    low_hz: float
    high_hz: float
    mel_scale: str
    mel_slopes: str
    mel_norm: bool
    spectrum: str
    log: str
    log_offset: float
    log_floor: float
    dynamic_range: Optional[float] = None
    centered: bool = False
    drop_last: bool = False
    coefficients: Optional[int] = None
    dct: str = "orthonormal"

    @property
    def width(self) -> int:
        """Values a frame."""
        return self.bands if self.coefficients is None else self.coefficients

    def frames(self, samples: int) -> int:
        """Return the number of frames of a clip; 0 or less where it is too short for one."""
        if self.centered:
            count = 1 + (samples + 2 * (self.fft // 2) - self.fft) // self.stride
            count = 0 if samples <= self.fft // 2 else count
        else:
            count = 1 + (samples - self.window) // self.stride if samples >= self.window else 0
        return count - (1 if self.drop_last else 0)

    def samples(self, frames: int) -> int:
        """Return the fewest samples that have this number of frames."""
        steps = (frames + (1 if self.drop_last else 0) - 1) * self.stride
        if self.centered:
            return max(steps + self.fft - 2 * (self.fft // 2), self.fft // 2 + 1)
        return steps + self.window

    def validate(self, rate: int) -> None:
        """Raise RequestError, naming the field, if the parameters are invalid; `rate` is in Hz."""
        numbers = (
            self.low_hz,
            self.high_hz,
            self.log_offset,
            self.log_floor,
            self.dynamic_range or 0.0,
        )
        problems = (
            (self.window < 2, "window must be at least 2 samples"),
            (self.stride < 1, "stride must be at least 1 sample"),
            (
                not self.window <= self.fft <= LONGEST_FFT,
                "fft must be at least the window's {} samples and at most {}".format(
                    self.window, LONGEST_FFT
                ),
            ),
            (not 1 <= self.bands <= self.fft, "bands must be at least 1 and at most fft"),
            (not all(math.isfinite(n) for n in numbers), "numbers must be finite"),
            (
                not 0 <= self.low_hz < self.high_hz,
                "low_hz must be at least 0 and below high_hz",
            ),
            (
                self.high_hz > rate / 2.0,
                "high_hz {:g} is above half the rate of {} Hz".format(self.high_hz, rate),
            ),
            (self.mel_scale not in MEL_SCALES, "mel_scale must be one of " + ", ".join(MEL_SCALES)),
            (
                self.mel_slopes not in MEL_SLOPES,
                "mel_slopes must be one of " + ", ".join(MEL_SLOPES),
            ),
            (self.spectrum not in SPECTRA, "spectrum must be one of " + ", ".join(SPECTRA)),
            (self.log not in LOGS, "log must be one of " + ", ".join(LOGS)),
            (
                self.log_offset < 0
                or self.log_floor < 0
                or self.log_offset + self.log_floor < 1e-30,
                "log_offset and log_floor must not be negative, and one of them at least 1e-30",
            ),
            ((self.dynamic_range or 1.0) <= 0, "dynamic_range must be positive"),
            (
                self.coefficients is not None and not 1 <= self.coefficients <= self.bands,
                "coefficients must be at least 1 and at most the {} bands".format(self.bands),
            ),
            (self.dct not in DCTS, "dct must be one of " + ", ".join(DCTS)),
        )
        _refuse(problems)


class AudioSpec(NamedTuple):
    """Everything that is done to a clip, in this order.

    Clips are mono float32 [samples] in [-1, 1] at `rate` Hz.

    1. `samples`: a shorter clip is padded with zeros at its end, a longer one cut; None: any
       length.
    2. `peak`: divided by its largest sample ("maximum") or the largest absolute one ("magnitude");
       one below 2**-24 is none, and leaves the clip as it is. None: not done.
    3. `front_end`: "waveform" keeps the samples; "log-mel" and "mfcc" do what `mel` says.
    4. `axes`: "frames-bands" has the values of a frame side by side, "bands-frames" those of a
       band.
    5. value = (value * scale[0] / scale[1] - mean) / std; `mean` and `std` have one entry, or one a
       band.
    6. rounded to float32; reshaped to `shape`, None being the one axis that the clip's length
       fills.
    7. `quantization` (scale, zero point) of an integer `dtype`: round half to even, add, clip.
    """

    shape: Tuple[Optional[int], ...]
    dtype: str
    rate: int
    samples: Optional[int] = None
    front_end: str = "waveform"
    peak: Optional[str] = None
    mel: Optional[MelSpec] = None
    axes: str = "frames-bands"
    scale: Tuple[float, float] = (1.0, 1.0)
    mean: Tuple[float, ...] = (0.0,)
    std: Tuple[float, ...] = (1.0,)
    quantization: Optional[Tuple[float, int]] = None

    @property
    def width(self) -> int:
        """Values a frame; 1 for a waveform."""
        return 1 if self.mel is None else self.mel.width

    def values(self, samples: int) -> int:
        """Return the number of values of a clip of this number of samples (after step 1)."""
        return samples if self.mel is None else max(0, self.mel.frames(samples)) * self.mel.width

    def to_json(self) -> Dict[str, Any]:
        """Return a JSON object; its "kind" tells it from an image's."""
        data: Dict[str, Any] = {
            field: list(value) if isinstance(value, tuple) else value
            for field, value in zip(self._fields, self)
        }
        data["mel"] = None if self.mel is None else dict(zip(self.mel._fields, self.mel))
        data["kind"] = "audio"
        return data

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> "AudioSpec":
        """Return what `to_json` described. Raises RequestError for anything else."""
        try:
            samples = data["samples"]
            spec = cls(
                shape=tuple(None if n is None else int(n) for n in data["shape"]),
                rate=int(data["rate"]),
                samples=None if samples is None else int(samples),
                front_end=str(data["front_end"]),
                peak=data["peak"],
                mel=None if data["mel"] is None else _mel(data["mel"]),
                axes=str(data["axes"]),
                **values_from_json(data),
            )
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise RequestError("not an audio input spec: {!r}".format(error)) from error
        spec.validate()
        return spec

    def validate(self) -> None:
        """Raise RequestError, naming the field, unless the spec makes sense in itself."""
        problems = (
            (self.front_end not in FRONT_ENDS, "front_end must be one of " + ", ".join(FRONT_ENDS)),
            (
                (self.mel is None) != (self.front_end == "waveform")
                or (self.mel is not None and self.mel.coefficients is None)
                != (self.front_end == "log-mel"),
                "log-mel needs a spectrum's parameters, mfcc also coefficients, waveform neither",
            ),
            (any(n is not None and n < 1 for n in self.shape), "shape must be positive"),
            (not 1 <= self.rate <= 10**6, "rate must be between 1 and 1000000 Hz"),
            (
                self.samples is not None and not 1 <= self.samples <= LONGEST_CLIP,
                "samples must be between 1 and {}".format(LONGEST_CLIP),
            ),
            (
                list(self.shape).count(None) != (1 if self.samples is None else 0),
                "shape must have one open axis for clips of any length, and none for a fixed one",
            ),
            (
                self.peak is not None and self.peak not in PEAKS,
                "peak must be one of " + ", ".join(PEAKS),
            ),
            (self.axes not in AXES, "axes must be one of " + ", ".join(AXES)),
            (len(self.mean) not in (1, self.width), "mean needs one entry, or one a band"),
            (len(self.std) not in (1, self.width), "std needs one entry, or one a band"),
            *value_problems(self),
        )
        _refuse(problems)
        if self.mel is not None:
            self.mel.validate(self.rate)
        if self.samples is not None:
            self.filled(self.values(self.samples))

    def filled(self, values: int) -> Tuple[int, ...]:
        """Return `shape` with its open axis sized for a number of values.

        Raises RequestError where they don't fill it.
        """
        fixed = 1
        for n in self.shape:
            fixed *= n or 1
        rest = values // fixed
        if rest * fixed != values or rest < 1 or (rest > 1 and None not in self.shape):
            raise RequestError(
                "audio input spec: {} values don't fill shape {}".format(values, list(self.shape))
            )
        return tuple(rest if n is None else n for n in self.shape)


Spec = Union[InputSpec, AudioSpec]
"""How a sample becomes a model's input tensor."""


def spec_from_json(data: Dict[str, Any]) -> Spec:
    """Return the spec of images or clips that `to_json` described; else raise RequestError."""
    if "kind" not in data:
        return InputSpec.from_json(data)
    if data["kind"] != "audio":
        raise RequestError("not an input spec: unknown kind {!r}".format(data["kind"]))
    return AudioSpec.from_json(data)


def _refuse(problems: Iterable[Tuple[bool, str]]) -> None:
    for wrong, sentence in problems:
        if wrong:
            raise RequestError("audio input spec: " + sentence)


def _mel(data: Dict[str, Any]) -> MelSpec:
    dynamic_range, coefficients = data["dynamic_range"], data["coefficients"]
    return MelSpec(
        window=int(data["window"]),
        stride=int(data["stride"]),
        fft=int(data["fft"]),
        bands=int(data["bands"]),
        low_hz=float(data["low_hz"]),
        high_hz=float(data["high_hz"]),
        mel_scale=str(data["mel_scale"]),
        mel_slopes=str(data["mel_slopes"]),
        mel_norm=bool(data["mel_norm"]),
        spectrum=str(data["spectrum"]),
        log=str(data["log"]),
        log_offset=float(data["log_offset"]),
        log_floor=float(data["log_floor"]),
        dynamic_range=None if dynamic_range is None else float(dynamic_range),
        centered=bool(data["centered"]),
        drop_last=bool(data["drop_last"]),
        coefficients=None if coefficients is None else int(coefficients),
        dct=str(data["dct"]),
    )
