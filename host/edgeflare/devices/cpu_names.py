"""Names of processors, and those of their features that change the numbers of quantised models."""

from collections.abc import Sequence

_X86 = {
    "avx2": "avx2",
    "avx512_vnni": "avx512_vnni (dot product)",
    "avx_vnni": "avx_vnni (dot product)",
    "avx512f": "avx512f",
    "amx_int8": "amx_int8",
}
_ARM = {
    "asimddp": "asimddp (dot product)",
    "i8mm": "i8mm",
    "asimdhp": "asimdhp (fp16)",
    "sve": "sve",
    "bf16": "bf16",
}
_ARM_PARTS = {
    0xD03: "Cortex-A53",
    0xD04: "Cortex-A35",
    0xD05: "Cortex-A55",
    0xD07: "Cortex-A57",
    0xD08: "Cortex-A72",
    0xD09: "Cortex-A73",
    0xD0A: "Cortex-A75",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse N1",
    0xD0D: "Cortex-A77",
    0xD40: "Neoverse V1",
    0xD41: "Cortex-A78",
    0xD42: "Cortex-A78AE",
    0xD44: "Cortex-X1",
    0xD46: "Cortex-A510",
    0xD47: "Cortex-A710",
    0xD49: "Neoverse N2",
    0xC07: "Cortex-A7",
    0xC0F: "Cortex-A15",
}
"""Parts of implementer 0x41, Arm itself."""
_OTHER_PARTS = {(0x4E, 0x003): "NVIDIA Denver 2", (0x4E, 0x004): "NVIDIA Carmel"}


def model_name(model: str | None, implementer: str | None, part: str | None) -> str | None:
    """Return a processor's name: as the system gives it, else by Arm's numbers (``0xd08``)."""
    if model:
        return model
    numbers = (_hexadecimal(implementer), _hexadecimal(part))
    if numbers[0] == 0x41 and numbers[1] in _ARM_PARTS:
        return _ARM_PARTS[numbers[1]]
    known = _OTHER_PARTS.get((numbers[0] or 0, numbers[1] or 0))
    return known or (f"Arm part {part} of {implementer}" if part else None)


def shown_name(cpu: str) -> str:
    """Return the name of a processor that a device describes by name or by Arm's part number."""
    return _ARM_PARTS.get(_hexadecimal(cpu) or 0, cpu)


def flag_names(arch: str, flags: Sequence[str] | None) -> str:
    """Return those instructions of a processor on which int8 and fp16 results depend."""
    if flags is None:
        return "flags: the system doesn't tell"
    x86 = arch in ("x86_64", "AMD64", "i686")
    wanted = _X86 if x86 else _ARM
    there = [words for flag, words in wanted.items() if flag in flags]
    absent = ", ".join(flag for flag in wanted if flag not in flags)
    if not there:
        what = "AVX2 or int8 dot-product" if x86 else "int8 dot-product or fp16"
        return (
            f"no {what} instructions ({absent}): int8 results may differ from a board that has them"
        )
    return f"int8 and fp16 by {', '.join(there)}" + (f" (it has no {absent})" if absent else "")


def _hexadecimal(text: str | None) -> int | None:
    try:
        return int(text or "", 16)
    except ValueError:
        return None
