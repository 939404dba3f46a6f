"""What a device's shell says where its Python command can't be run."""

from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transport import Completed
from edgeflare.errors import DevicePythonError
from edgeflare.text import clean_text


def check_ran(done: Completed, python: str, name: str, otherwise: str = "") -> None:
    """Raise DevicePythonError where the shell found no such command, or one that it may not run.

    `otherwise` is what else the user may do, if anything.
    """
    if done.status not in (126, 127):
        return
    problem = "can't be run" if done.status == 126 else "is not there"
    said = [clean_text(line, LONGEST_LINE) for line in done.stderr.strip().splitlines()[-1:]]
    raise DevicePythonError(
        f"the Python command {python!r} {problem} on {name}"
        f"{f' ({said[0]})' if said else ''}; install Python 3.8 or later there, or give "
        f"its command as `python` in the inventory{otherwise}"
    )
