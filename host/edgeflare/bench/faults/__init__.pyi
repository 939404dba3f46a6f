# The public names; read at run time, too.

from .catalogue import Draw as Draw
from .catalogue import draws as draws
from .catalogue import is_reserved as is_reserved
from .healthy import Healthy as Healthy
from .healthy import healthy_models as healthy_models
from .kinds import (
    KINDS as KINDS,
)
from .kinds import (
    Inapplicable as Inapplicable,
)
from .kinds import (
    Parameters as Parameters,
)
from .kinds import (
    faulty_model as faulty_model,
)
from .originals import Original as Original
from .originals import open_original as open_original
from .witness import Witness as Witness
from .witness import find_witness as find_witness
