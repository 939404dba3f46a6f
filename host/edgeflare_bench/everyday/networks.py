"""Small networks of many architectures, in PyTorch; the extra `torch` is needed.

Each takes a batch as its model does and returns what the model returns, but that scores are logits.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edgeflare._internal import extras

Module = Any
Tensor = Any


def _built(forward: Callable[..., Any], **parts: Module) -> Module:
    """Return a module of named parts; `forward` is given it and the inputs."""
    module = extras.torch().nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    module.forward = lambda *inputs: forward(module, *inputs)
    return module


def _conv(
    before: int, after: int, size: int = 3, stride: int = 1, act: str = "ReLU", **more: Any
) -> Module:
    """Return a convolution, its batch normalisation and an activation ("": none)."""
    nn = extras.torch().nn
    parts = [
        nn.Conv2d(before, after, size, stride, size // 2, bias=False, **more),
        nn.BatchNorm2d(after),
    ]
    return nn.Sequential(*parts, *([getattr(nn, act)()] if act else []))


def _head(channels: int, classes: int) -> Module:
    nn = extras.torch().nn
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def plain() -> Module:
    """Return convolutions without normalisation, pooling, and two dense layers."""
    nn = extras.torch().nn
    layers: list[Module] = []
    for before, after in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    dense = [nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 8)]
    return nn.Sequential(*layers, *dense)


def residual() -> Module:
    """Return residual blocks (He et al., CVPR 2016)."""
    torch = extras.torch()

    def block(before: int, after: int, stride: int) -> Module:
        return _built(
            lambda own, x: torch.relu(own.body(x) + own.skip(x)),
            body=torch.nn.Sequential(_conv(before, after, 3, stride), _conv(after, after, act="")),
            skip=_conv(before, after, 1, stride, act=""),
        )

    blocks = (block(16, 16, 2), block(16, 32, 2), block(32, 48, 2))
    return torch.nn.Sequential(_conv(3, 16), *blocks, _head(48, 8))


def separable() -> Module:
    """Return inverted residuals of depthwise convolutions with ReLU6 (MobileNetV2, CVPR 2018)."""
    nn = extras.torch().nn

    def block(before: int, after: int, stride: int) -> Module:
        wide = before * 3
        body = nn.Sequential(
            _conv(before, wide, 1, act="ReLU6"),
            _conv(wide, wide, 3, stride, "ReLU6", groups=wide),
            _conv(wide, after, 1, act=""),
        )
        is_skipped = stride == 1 and before == after
        return _built(lambda own, x: own.body(x) + x if is_skipped else own.body(x), body=body)

    blocks = (block(16, 16, 1), block(16, 24, 2), block(24, 24, 1), block(24, 32, 2))
    return nn.Sequential(
        _conv(3, 16, 3, 2, "ReLU6"), *blocks, _conv(32, 64, 1, act="ReLU6"), _head(64, 8)
    )


def squeeze() -> Module:
    """Return squeeze-and-excite blocks with hard-swish (MobileNetV3, ICCV 2019)."""
    nn = extras.torch().nn

    def excite(channels: int) -> Module:
        gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, channels // 4, 1),
            nn.ReLU(),
            nn.Conv2d(channels // 4, channels, 1),
            nn.Hardsigmoid(),
        )
        return _built(lambda own, x: x * own.gate(x), gate=gate)

    def block(before: int, after: int, stride: int) -> Module:
        wide = before * 3
        body = nn.Sequential(
            _conv(before, wide, 1, act="Hardswish"),
            _conv(wide, wide, 5, stride, "Hardswish", groups=wide),
            excite(wide),
            _conv(wide, after, 1, act=""),
        )
        is_skipped = stride == 1 and before == after
        return _built(lambda own, x: own.body(x) + x if is_skipped else own.body(x), body=body)

    blocks = (block(16, 24, 2), block(24, 24, 1), block(24, 32, 2))
    return nn.Sequential(
        _conv(3, 16, 3, 2, "Hardswish"), *blocks, _conv(32, 64, 1, act="Hardswish"), _head(64, 8)
    )


def transformer() -> Module:
    """Return attention over patches (vision transformer, ICLR 2021)."""
    torch = extras.torch()
    nn, width, heads, patches = torch.nn, 48, 4, 64

    def attend(own: Module, x: Tensor) -> Tensor:
        query, key, value = (
            part.reshape(-1, patches, heads, width // heads).transpose(1, 2)
            for part in own.project(x).chunk(3, -1)
        )
        share = torch.softmax(query @ key.transpose(2, 3) * (width / heads) ** -0.5, -1)
        return own.join((share @ value).transpose(1, 2).reshape(-1, patches, width))

    def block() -> Module:
        return _built(
            lambda own, x: (y := x + own.attention(own.first(x))) + own.dense(own.second(y)),
            first=nn.LayerNorm(width),
            attention=_built(
                attend, project=nn.Linear(width, 3 * width), join=nn.Linear(width, width)
            ),
            second=nn.LayerNorm(width),
            dense=nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width)),
        )

    net = _built(
        lambda own, x: own.head(
            own.blocks(own.patch(x).flatten(2).transpose(1, 2) + own.places).mean(1)
        ),
        patch=nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, width, 2, 2)),
        blocks=nn.Sequential(*(block() for _ in range(3)), nn.LayerNorm(width)),
        head=nn.Linear(width, 8),
    )
    net.places = nn.Parameter(torch.randn(1, patches, width) * 0.1)
    return net


def mixer() -> Module:
    """Return dense layers over patches and over channels in turn (MLP-Mixer, NeurIPS 2021)."""
    nn, width, patches = extras.torch().nn, 40, 64

    def dense(size: int) -> Module:
        return nn.Sequential(nn.Linear(size, 80), nn.GELU(), nn.Linear(80, size))

    def mix(own: Module, x: Tensor) -> Tensor:
        y = x + own.places(own.first(x).transpose(1, 2)).transpose(1, 2)
        return y + own.channels(own.second(y))

    def block() -> Module:
        norms = {"first": nn.LayerNorm(width), "second": nn.LayerNorm(width)}
        return _built(mix, places=dense(patches), channels=dense(width), **norms)

    return _built(  # raw pixels: the normalisation is the first layer's
        lambda own, x: own.head(
            own.blocks(own.patch(x / 127.5 - 1).flatten(2).transpose(1, 2)).mean(1)
        ),
        patch=nn.Conv2d(3, width, 4, 4),
        blocks=nn.Sequential(*(block() for _ in range(3)), nn.LayerNorm(width)),
        head=nn.Linear(width, 8),
    )


def branches() -> Module:
    """Return branches of several kernel sizes that are concatenated (GoogLeNet, CVPR 2015)."""
    torch = extras.torch()

    def block(before: int) -> Module:
        nn = torch.nn
        return _built(
            lambda own, x: torch.cat([part(x) for part in own.children()], 1),
            one=_conv(before, 12, 1),
            three=nn.Sequential(_conv(before, 8, 1), _conv(8, 12)),
            five=nn.Sequential(_conv(before, 8, 1), _conv(8, 12, 5)),
            pool=nn.Sequential(nn.AvgPool2d(3, 1, 1), _conv(before, 12, 1)),
        )

    pool = torch.nn.MaxPool2d(2)
    return torch.nn.Sequential(_conv(3, 16), pool, block(16), pool, block(48), _head(48, 8))


def dense() -> Module:
    """Return layers that are given all earlier ones' channels (DenseNet, CVPR 2017); NHWC."""
    torch = extras.torch()
    nn = torch.nn

    def layer(channels: int) -> Module:
        return _built(lambda own, x: torch.cat([x, own.grow(x)], 1), grow=_conv(channels, 8))

    def stage(channels: int) -> list[Module]:
        return [layer(channels + 8 * number) for number in range(3)]

    body = nn.Sequential(_conv(3, 16, 3, 2), *stage(16), nn.AvgPool2d(2), *stage(40), _head(64, 8))
    return _built(lambda own, x: own.body(x.permute(0, 3, 1, 2)), body=body)


def _rows(kind: str, both: bool) -> Module:
    nn = extras.torch().nn
    cell = getattr(nn, kind)(28, 40, batch_first=True, bidirectional=both)
    return _built(
        lambda own, x: own.head(own.cell(x.reshape(-1, 28, 28))[0][:, -1]),
        cell=cell,
        head=nn.Linear(80 if both else 40, 10),
    )


def lstm() -> Module:
    """Return an LSTM over the rows of a grey image."""
    return _rows("LSTM", both=False)


def gru() -> Module:
    """Return gated recurrent units over the rows of a grey image, in both directions."""
    return _rows("GRU", both=True)


def waveform() -> Module:
    """Return one-dimensional convolutions over a clip (M5, ICASSP 2017)."""
    nn = extras.torch().nn
    layers: list[Module] = []
    for before, after, size, stride in (
        (1, 16, 64, 8),
        (16, 24, 5, 4),
        (24, 32, 5, 4),
        (32, 48, 5, 2),
    ):
        layers += [
            nn.Conv1d(before, after, size, stride, size // 2),
            nn.BatchNorm1d(after),
            nn.ReLU(),
        ]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6))
    return _built(lambda own, x: own.net(x.unsqueeze(1)), net=net)


def spectrum() -> Module:
    """Return depthwise-separable convolutions over log-mel bands (DS-CNN, arXiv 1711.07128)."""
    nn = extras.torch().nn
    blocks = [
        nn.Sequential(_conv(24, 24, 3, stride, groups=24), _conv(24, 24, 1)) for stride in (1, 2, 1)
    ]
    return nn.Sequential(_conv(1, 24, 3, 2), *blocks, _head(24, 6))


def grid_detector() -> Module:
    """Return boxes on a grid of 8 x 8: rows of centre, size, objectness and three classes, in 0 to 1."""
    torch = extras.torch()

    def forward(own: Module, x: Tensor) -> Tensor:
        rows = torch.sigmoid(own.net(x)).flatten(2).transpose(1, 2)
        centre = own.corners + rows[..., :2] / 8
        return torch.cat([centre, rows[..., 2:]], -1)

    layers = (
        _conv(3, 16, 3, 2),
        _conv(16, 24, 3, 2),
        _conv(24, 32, 3, 2),
        _conv(32, 48),
        _conv(48, 48),
    )
    net = torch.nn.Sequential(*layers, torch.nn.Conv2d(48, 8, 1))
    module = _built(forward, net=net)
    down, along = torch.meshgrid(torch.arange(8) / 8, torch.arange(8) / 8, indexing="ij")
    module.register_buffer("corners", torch.stack([along, down], -1).reshape(1, 64, 2))
    return module


def anchor_detector() -> Module:
    """Return two anchors a cell of 8 x 8: boxes [128, 4] relative to them, and scores of classes."""
    torch = extras.torch()

    def forward(own: Module, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = own.net(x).permute(0, 2, 3, 1)
        scores = torch.sigmoid(own.scores(maps.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        boxes = own.boxes(maps.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return boxes.reshape(-1, 128, 4), scores.reshape(-1, 128, 3)

    act = "ReLU6"
    layers = [_conv(3, 16, 3, 2, act), _conv(16, 32, 3, 2, act), _conv(32, 48, 3, 2, act)]
    layers += [_conv(48, 48, 3, 1, act, groups=48), _conv(48, 48, 1, act=""), _conv(48, 48)]
    heads = {name: torch.nn.Conv2d(48, size, 1) for name, size in (("boxes", 8), ("scores", 6))}
    return _built(forward, net=torch.nn.Sequential(*layers), **heads)


def segmenter() -> Module:
    """Return a map of four classes [H, W, 4]: a U-net that is enlarged in two ways (MICCAI 2015)."""
    torch = extras.torch()
    nn = torch.nn

    def forward(own: Module, x: Tensor) -> Tensor:
        first = own.first(x)
        second = own.second(first)
        third = own.up(own.third(second))
        joined = own.fourth(torch.cat([third, second], 1))
        large = nn.functional.interpolate(joined, scale_factor=2, mode="bilinear")
        return own.last(torch.cat([large, first], 1)).permute(0, 2, 3, 1)

    return _built(
        forward,
        first=_conv(3, 12),
        second=nn.Sequential(_conv(12, 24, 3, 2), _conv(24, 24)),
        third=nn.Sequential(_conv(24, 32, 3, 2), _conv(32, 32), _conv(32, 32)),
        up=nn.ConvTranspose2d(32, 24, 2, 2),
        fourth=_conv(48, 24),
        last=nn.Sequential(_conv(36, 12), nn.Conv2d(12, 4, 1)),
    )


def embedder() -> Module:
    """Return a vector of length 1, alike for images of one class."""
    torch = extras.torch()
    act = "LeakyReLU"
    layers = (_conv(3, 16, 3, 2, act), _conv(16, 32, 3, 2, act), _conv(32, 48, 3, 2, act))
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(768, 32))
    return _built(lambda own, x: (y := own.net(x)) / y.norm(dim=1, keepdim=True), net=net)


def shuffle() -> Module:
    """Return grouped convolutions whose channels are shuffled (ShuffleNet, CVPR 2018)."""
    nn = extras.torch().nn

    def mix(x: Tensor) -> Tensor:
        _, channels, height, width = x.shape
        return x.reshape(-1, 2, channels // 2, height, width).transpose(1, 2).reshape(x.shape)

    def block(channels: int, stride: int) -> Module:
        return _built(
            lambda own, x: own.third(own.second(mix(own.first(x)))),
            first=_conv(channels, channels, 1, groups=2),
            second=_conv(channels, channels, 3, stride, "", groups=channels),
            third=_conv(channels, channels, 1, groups=2),
        )

    return nn.Sequential(_conv(3, 24, 3, 2), block(24, 2), block(24, 1), _head(24, 6))


def stereo() -> Module:
    """Return how far a picture is shifted against another: two inputs, compared at each shift."""
    torch = extras.torch()

    def forward(own: Module, left: Tensor, right: Tensor) -> Tensor:
        maps = torch.cat([own.eye(left), own.eye(right), left - right], 1)
        return own.net(maps)

    eye = _conv(3, 16)
    net = torch.nn.Sequential(_conv(35, 32, 5), _conv(32, 32, 3, 2), _conv(32, 32, 3), _head(32, 5))
    return _built(forward, eye=eye, net=net)


NETWORKS: Mapping[str, Callable[[], Module]] = {
    function.__name__: function
    for function in (
        *(plain, residual, separable, squeeze, transformer, mixer, branches, dense, lstm, gru),
        *(waveform, spectrum, grid_detector, anchor_detector, segmenter, embedder, shuffle, stereo),
    )
}
"""The architectures by name."""
