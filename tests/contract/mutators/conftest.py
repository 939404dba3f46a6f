"""The table of the contract: one row an operator; a new operator is one row."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import edgeflare_mutators as mutators
from edgeflare_mutators import SAMPLE_RATE, Operator, Params, Range, Sample, SampleSpec


class Posterize(Operator):
    """What a user might write: keep fewer levels."""

    name = "posterize"
    limits = (Range("levels", 2, 64, "int"), Range("shift", 0.0, 1.0))

    def _apply(self, sample: Sample, params: Params) -> Sample:
        step = 256 / params["levels"]
        kept = (np.floor(sample / step) + params["shift"]) * step
        return np.clip(np.rint(kept), 0, 255).astype(np.uint8)


class Echo(Operator):
    """What a user might write for audio: the clip again, later and quieter, and longer by that."""

    name = "echo"
    kind = "audio"
    keeps_length = False
    limits = (Range("seconds", 0.001, 0.1), SAMPLE_RATE)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        later = np.zeros(round(params["seconds"] * params["sample_rate"]), np.float32)
        return np.concatenate((sample, later)) + np.concatenate((later, sample)) / 2


class Row(NamedTuple):
    """An operator, what it draws from PCG64(1), and the SHA-256 of that applied to `pattern`.

    None where the bits may differ between CPUs, or with the version of a library.
    """

    operator: Operator
    drawn: dict[str, Any]
    digest: str | None


TABLE = {
    "random-pixel-change": Row(
        mutators.RandomPixelChange(),
        {"count": 5, "seed": 8561015897205333},
        "14d1901ef5cfa63a0af714600d198499f5fbaadd3bd5f05e719e63ed80bcf95e",
    ),
    "gaussian-noise": Row(
        mutators.GaussianNoise(),
        {"sigma": 8.67732437050385, "seed": 8561015897205333},
        "304c31fbcaf8766b289305cc3aaa1f5cd9af04bf5c5cf0f00e1b57eef3c5143f",
    ),
    "multiplicative-noise": Row(
        mutators.MultiplicativeNoise(),
        {"mean": 0.011821624700256717, "variance": 0.04752318481629677, "seed": 1298474356252035},
        "5a67aa6f0bad06d909c7e8847a2396a84de8c3cf2c004b8bf9a0aacc11e1ce4b",
    ),
    "average-blur": Row(
        mutators.AverageBlur(),
        {"kernel": 3},
        "3def0476aa05bd1f0f6b6d9d4543f85ad0d66411840095f0569a931c6906b029",
    ),
    "gaussian-blur": Row(
        mutators.GaussianBlur(),
        {"kernel": 5},
        "111be440a78ea259926741e4b2480b1bf4fdc22bce132fef335dcebfeddc0d4c",
    ),
    "median-blur": Row(
        mutators.MedianBlur(),
        {"kernel": 5},
        "c85441d41086ca2be056ba5857726e656da79d4fd51e5f2a950103941080d9ed",
    ),
    "many pixels": Row(
        mutators.RandomPixelChange(count=(0, 5000)),
        {"count": 2366, "seed": 8561015897205333},
        "a33bb28ca2a6624462f1af3cd3c73a264c6d97fe0f78600099877986f67b7397",
    ),
    "strong noise": Row(
        mutators.GaussianNoise(sigma=(0.0, 255.0)),
        {"sigma": 130.51451429856547, "seed": 8561015897205333},
        "63cd18de05605de1e55186b2eb2ae1f25e577289090173e156c790cda11a82d7",
    ),
    "strong product": Row(
        mutators.MultiplicativeNoise((-1.0, 10.0), (0.0, 10.0)),
        {"mean": 4.630037871702823, "variance": 9.504636963259353, "seed": 1298474356252035},
        "44cd0a3d19890e99db5a0a2f9fa8eca856cf32184dae70fd77f195edcf52ffae",
    ),
    "wide average": Row(
        mutators.AverageBlur(kernel=(1, 99)),
        {"kernel": 47},
        "3324c2ce58efed046633cbbda8a30f7064e1038cc6d904bd974b4916bd08cb83",
    ),
    "wide gaussian": Row(
        mutators.GaussianBlur(kernel=(1, 99)),
        {"kernel": 47},
        "040488d967d543f26e0d25b909a5af735b11476bf589c5c58cae73d9cde386a3",
    ),
    "wide median": Row(
        mutators.MedianBlur(kernel=(1, 99)),
        {"kernel": 47},
        "13fdbd1ebec6de1247dc63b15dcb41df855cfa3a646a992fe5d11105e81b6ecd",
    ),
    "brightness": Row(
        mutators.Brightness(),
        {"by": 0.011821624700256717},
        "e92a21b890aaebd99697139a3b11e106bf56d5f28873a1d25c2ca169219590e4",
    ),
    "contrast": Row(
        mutators.Contrast(),
        {"by": 0.011821624700256717},
        "75d596327c1da815fda14b8c2edca64662a5894c1050085685309ec934b52f2b",
    ),
    "haze": Row(
        mutators.Haze(),
        {"density": 0.307092974820154, "seed": 8561015897205333},
        "1382ecfa316745f21623f8630693d346f8a440db4ac23484a9893331b4576fdc",
    ),
    "natural-blur": Row(
        mutators.NaturalBlur(),
        {"sigma": 0.031988851543766045},
        "e420958773517c9e8a86d8dde6f653b127f0a9a9d9e38bedc15eec5c00f69994",
    ),
    "sensor-noise": Row(
        mutators.SensorNoise(),
        {"sigma": 12.795540617506418, "seed": 8561015897205333},
        "76dc556a7be86fbdda92d6878603b451bbcc9a5b16fd0cb37ece96604506bbf9",
    ),
    "jpeg": Row(
        mutators.Jpeg(),
        {"quality": 48},
        "7fd2f3cd08453fba90546652785c3af22da656203889ec1a99adca42aa8fa82e",
    ),
    "rotation": Row(
        mutators.Rotation(),
        {"degrees": 0.3546487410077006},
        "5439315f73d9f626dbb9aef9ed25d5951bcd451e233ddefff883886e1fd0ff4a",
    ),
    "shift": Row(
        mutators.Shift(),
        {"x": 0.0023643249400513433, "y": 0.09009273926518707},
        "346579bfcab339be0340f40118dd3fa52692bda8c8822546a863be6aedb8efac",
    ),
    "crop": Row(
        mutators.Crop(),
        {"share": 0.10236432494005135, "x": 0.9504636963259353, "y": 0.14415961271963373},
        "3075c4fb4fa4bb52b6c2f453fccbfc6a0aa53fb6dae866527b0b122ce1ba3230",
    ),
    "saturation": Row(
        mutators.Saturation(),
        {"by": 0.5354648741007701},
        "30d25179c7531a8b4aa342319d05b0f9e997fc05760cedb83a0d6989232cfc42",
    ),
    "shot-noise": Row(
        mutators.ShotNoise(),
        {"sigma": 38.386621852519255, "seed": 8561015897205333},
        "1b94da867238f9e40c65ed7cf3b90a09d0ce02aa44e88ab3b98aa829e07d9b15",
    ),
    "impulse-noise": Row(
        mutators.ImpulseNoise(),
        {"share": 0.06141859496403081, "seed": 8561015897205333},
        "81d35b47e9224633a52ca93103fce502253d56745cc4575a34e5786ab4f7bdf9",
    ),
    "defocus-blur": Row(
        mutators.DefocusBlur(),
        {"radius": 0.036558687478589764},
        "3741d883630fa292ff50036200e987e33722cf14e6d5cc78d8c47e9b2f96d69a",
    ),
    "glass-blur": Row(
        mutators.GlassBlur(),
        {"distance": 0.051182162470025674, "seed": 8561015897205333},
        "3e56a99a2c7953dfd45f641b3bbb3471eb39debf57dd7f0647512dc6f76e9745",
    ),
    "motion-blur": Row(
        mutators.MotionBlur(),
        {"length": 0.12795540617506418, "degrees": 171.08346533866836},
        "7c6c20b91647a8bda09ab6c7c743ff25dfe03673b2aac7468052ab794ab9c074",
    ),
    "zoom-blur": Row(
        mutators.ZoomBlur(),
        {"zoom": 0.17913756864508984},
        "cfe9ce54afcd2f43564a6d053bfc39b98088828acf11d2b954c44549fd93a2c3",
    ),
    "elastic": Row(
        mutators.Elastic(),
        {"distance": 0.0767732437050385, "seed": 8561015897205333},
        "6b03017d64f6c07f5474848944fa24c3e63496569c6901dc1663b72590c81ec1",
    ),
    "spatter": Row(
        mutators.Spatter(),
        {"amount": 0.17913756864508984, "seed": 8561015897205333},
        "df2aa668f3763bc487921df6ee0303017987afc526dabb902729eb37bd9a9579",
    ),
    "snow": Row(
        mutators.Snow(),
        {"amount": 0.5118216247002567, "seed": 8561015897205333},
        "78a3065b145181cd471a38673c28a807fc61ffb09e0d6a93e4cf0d84c9d89ec3",
    ),
    "scale": Row(
        mutators.Scale(),
        {"by": 0.05827513729017969},
        "2cc7ea41617e883c9bb72f04dd0b13056b8f01e171d0c2b65a754a72aca3513c",
    ),
    "pixelate": Row(
        mutators.Pixelate(),
        {"block": 0.036558687478589764},
        "2c6f00411e694d17f7e8207e16d53573370bf20c94f37d6bdfcc1d5df6ecace1",
    ),
    "a user's": Row(
        Posterize(),
        {"levels": 31, "shift": 0.9504636963259353},
        "b9a128337381168cc8079cdec8346386368af483faf57519eba3aa5ad1710e0e",
    ),
    "time-stretch": Row(
        mutators.TimeStretch(), {"speed": 1.0303197311151155, "sample_rate": 16000}, None
    ),
    "pitch-shift": Row(
        mutators.PitchShift(), {"semitones": 0.09457299760205373, "sample_rate": 16000}, None
    ),
    "time-shift": Row(
        mutators.TimeShift(),
        {"share": 0.011821624700256717, "sample_rate": 16000},
        "797654a09e8242208284968e50c79d2bf54e1e466c1b462d15d99f3b5f6881b8",
    ),
    "gain": Row(
        mutators.Gain(),
        {"decibels": 0.2837189928061612},
        "39fcffccf047a1a3ab40ea86e79928b1cc347d8d9ad2aff9ebc90f5ea9d42b9f",
    ),
    "white-noise": Row(
        mutators.WhiteNoise(),
        {"level": 0.2866201098321438, "seed": 8561015897205333},
        "2e1c4ad9466a1fb9b21cf98d74efbfa6b9b5eec3516d495a532c485f48c17091",
    ),
    "room": Row(
        mutators.Room(),
        {
            "wet": 0.3582751372901797,
            "decay": 0.767801402611858,
            "seed": 1298474356252035,
            "sample_rate": 16000,
        },
        None,
    ),
    "band-pass": Row(
        mutators.BandPass(),
        {
            "wet": 0.5118216247002567,
            "center": 3811.762046038554,
            "width": 0.7147978229522542,
            "order": 4,
            "sample_rate": 16000,
        },
        None,
    ),
    "tempo": Row(mutators.Tempo(), {"speed": 1.0303197311151155, "sample_rate": 16000}, None),
    "a user's of audio": Row(
        Echo(),
        {"seconds": 0.051670340845325416, "sample_rate": 16000},
        "47befe2d02a76a75fb15019c2485760263ef6861a2ca4c55054732bfe18722f8",
    ),
}


@pytest.fixture(scope="session", params=TABLE.values(), ids=TABLE.keys())
def row(request: pytest.FixtureRequest) -> Row:
    """Each row of the table in turn."""
    return request.param


@pytest.fixture(scope="session")
def operator(row: Row) -> Operator:
    """Each operator of the table in turn."""
    return row.operator


@pytest.fixture
def pattern(operator: Operator) -> Sample:
    """A sample of the operator's kind, the same for ever: uint8 [19, 23, 3] of all levels, or float32 [4000]."""
    if operator.kind == "image":
        return (np.arange(19 * 23 * 3) * 7919 % 256).astype(np.uint8).reshape(19, 23, 3)
    return (np.arange(4000) * 7919 % 4096 / 2048 - 1).astype(np.float32)


@pytest.fixture
def spec(pattern: Sample) -> SampleSpec:
    """The pattern's spec; audio of 16 kHz."""
    return SampleSpec.of(pattern, 16_000)
