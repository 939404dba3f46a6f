"""Files that appear whole or not at all."""

import uuid
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, and give it its own once it is whole. Raises OSError.

    It may be lost with the machine's power, unlike what `store.samples.write_durably` writes.
    """
    temporary = path.with_name(f".new-{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
