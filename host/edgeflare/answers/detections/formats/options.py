"""What a user states of a detector's output format."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from typing_extensions import Self

from edgeflare._internal import plugins
from edgeflare.types import Task

BUILT_IN: tuple[str, ...] = (
    "auto",
    "yolo",
    "yolo-objectness",
    "end-to-end",
    "ssd",
    "ssd-raw",
    "grid",
    "fastestdet",
)
"""Names of the formats that `DetectorOptions` lists."""
DetectorKind: TypeAlias = Annotated[str, plugins.known_name("detector", BUILT_IN)]
BoxOrder: TypeAlias = Literal["xyxy", "yxyx", "cxcywh", "xywh"]
BoxUnits: TypeAlias = Literal["pixels", "shares"]
Activation: TypeAlias = Literal["none", "sigmoid", "softmax"]
NO_BACKGROUND = -1


_Channel: TypeAlias = Annotated[int, Field(ge=0)]
_Count: TypeAlias = Annotated[int, Field(ge=1)]


class GridOptions(BaseModel, extra="forbid", frozen=True):
    """How each cell of an anchor-free grid states one object.

    An output is [1, channels, rows, columns] or [1, rows, columns, channels]; several outputs are
    several grids of one description. The numbers of channels count from 0. `objectness`: the channel
    of the objectness; none by default. `classes`: the first channel of the classes and their number;
    null: all from there on. The score is objectness ** `objectness_power` * class ** `class_power`
    of the best class.

    `form` "centre": the channels `box` are x, y, width and height. The centre is, in cells, column +
    f(x) and row + f(y) with f = `centre`, tanh, sigmoid or linear. "distances": they are the
    distances of left, top, right and bottom from the cell's centre. `size`: how a width, a height
    and a distance are stated: "sigmoid": the sigmoid is its share of the image; "exp" and "linear":
    the exponential, or the value itself, is its length in cells.
    """

    objectness: _Channel | None = None
    box: tuple[_Channel, _Channel, _Channel, _Channel]
    classes: tuple[_Channel, _Count | None]
    objectness_power: float = Field(default=1.0, gt=0)
    class_power: float = Field(default=1.0, gt=0)
    form: Literal["centre", "distances"] = "centre"
    centre: Literal["tanh", "sigmoid", "linear"] = "linear"
    size: Literal["sigmoid", "exp", "linear"] = "exp"


FASTESTDET = GridOptions(
    objectness=0,
    box=(1, 2, 3, 4),
    classes=(5, None),
    objectness_power=0.6,
    class_power=0.4,
    centre="tanh",
    size="sigmoid",
)
"""The grid of FastestDet (https://github.com/dog-qiuqiu/FastestDet), classes after the softmax."""


class DetectorOptions(BaseModel, extra="forbid", frozen=True):
    """The output format of a detector, in the order of the tensors that it needs.

    `kind`:

    - "auto": one of the following, by the outputs' names and shapes; what else is stated is kept;
    - "yolo": [1, 4 + classes, anchors] or [1, anchors, 4 + classes], boxes and scores of the classes
      without objectness, as YOLOv8, v9 and v11 have it;
    - "yolo-objectness": the same with 5 + classes, the fifth the objectness that scores are
      multiplied by, as YOLOv5, v6, v7 and X have it;
    - "end-to-end": [1, objects, 6], left, top, right, bottom, score and class, as YOLOv10 and YOLO26;
    - "ssd": boxes [1, objects, 4], classes and scores [1, objects] and the number of objects, as
      TensorFlow Lite's detection post-processing gives them (the last one may lack);
    - "ssd-raw": scores [1, anchors, classes] and boxes [1, anchors, 4] with the priors decoded, or
      each with its last axes swapped; YOLO heads with boxes and scores apart, too;
    - "grid": what `grid` says; "fastestdet": that with `FASTESTDET`;
    - another name: a user's own, declared by an installed distribution in the entry-point group
      ``edgeflare.detectors``: a callable that takes the de-quantised outputs, float64 by name, and
      the input's (height, width), and returns boxes [n, 4] as `edgeflare.types.Detections` has them,
      class indices [n] and scores [n].

    `outputs`: names of the tensors, in the order above; needed where a model has more, or where
    shapes and names don't tell them apart. `box`: the order of a box: left, top, right, bottom
    ("xyxy", "yxyx"), centre, width and height ("cxcywh") or left, top, width and height ("xywh").
    `units`: pixels of the model's input, or shares of its sides. `activation`: what scores are still
    to be put through. `background`: the class of the background, which is left out of "ssd-raw": the
    others count from 0 without it; -1: there is none. What is null, `complete_options` decides.

    `suppress`: whether overlapping boxes of one class are suppressed; by default they are, but for
    the kinds "end-to-end" and "ssd", of which the model has done so.
    """

    task: ClassVar[Task] = "detection"

    kind: DetectorKind = "auto"
    outputs: Annotated[
        tuple[str, ...], BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)
    ] = ()
    box: BoxOrder | None = None
    units: BoxUnits | None = None
    activation: Activation | None = None
    background: int | None = Field(default=None, ge=NO_BACKGROUND)
    grid: GridOptions | None = None
    suppress: bool | None = None

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        if self.kind == "grid" and self.grid is None:
            raise ValueError("kind grid needs the table `grid`, which describes a cell")
        if self.kind != "grid" and self.grid is not None:
            raise ValueError(f"`grid` is for kind grid, not for {self.kind}")
        return self

    @property
    def suppresses(self) -> bool:
        """Whether overlapping boxes of one class are suppressed."""
        return _SUPPRESSES.get(self.kind, True) if self.suppress is None else self.suppress

    @property
    def box_order(self) -> BoxOrder:
        """The order of a box: what is stated, or what the kind's models usually have."""
        return self.box or _ORDERS.get(self.kind, "xyxy")

    @property
    def box_units(self) -> BoxUnits:
        """The units of a box: what is stated, or what the kind's models usually have."""
        return self.units or _UNITS.get(self.kind, "shares")


_SUPPRESSES: Mapping[str, bool] = {"end-to-end": False, "ssd": False}
_ORDERS: Mapping[str, BoxOrder] = {"yolo": "cxcywh", "yolo-objectness": "cxcywh", "ssd": "yxyx"}
_UNITS: Mapping[str, BoxUnits] = {
    "yolo": "pixels",
    "yolo-objectness": "pixels",
    "end-to-end": "pixels",
}
