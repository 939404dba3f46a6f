# The public names; read at run time, too.

from .place import PlaceWaits as PlaceWaits
from .place import stop_waiting_for_places as stop_waiting_for_places
from .transport import held_place as held_place
