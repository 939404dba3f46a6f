"""A stand-in for the CUDA runtime library: C functions over memory of its own, as strict as a GPU.

Copies and inferences wait on their stream until it is synchronised. An address that was never
allocated, or was freed, and a stream that is none, fail as CUDA has them fail.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace

OK, INVALID_VALUE, NO_DEVICE, INVALID_HANDLE, ILLEGAL_ADDRESS = 0, 1, 100, 400, 700
_TEXTS = {
    OK: b"no error",
    INVALID_VALUE: b"invalid argument",
    NO_DEVICE: b"no CUDA-capable device is detected",
    INVALID_HANDLE: b"invalid resource handle",
    ILLEGAL_ADDRESS: b"an illegal memory access was encountered",
}
_int, _size, _address = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
_int_out, _address_out = ctypes.POINTER(_int), ctypes.POINTER(_address)


class StandInGpu:
    """One GPU: `memory` {address: bytes}, `streams` {handle: what waits on it}."""

    def __init__(
        self,
        name: str = "Orin",
        capability: tuple[int, int] = (8, 7),
        version: int = 12060,
        devices: int = 1,
    ) -> None:
        self.name, self.capability, self.version, self.devices = name, capability, version, devices
        self.memory: dict[int, bytearray] = {}
        self.streams: dict[int, list[Callable[[], int]]] = {}
        self._next = 0x7F0000000000
        self._kept: list[object] = []

    def library(self) -> SimpleNamespace:
        """The library as ctypes would load it, with the names of its version."""
        library = SimpleNamespace()
        properties = ["cudaGetDeviceProperties"]
        if self.version // 1000 == 12:  # the only one with both
            properties.append("cudaGetDeviceProperties_v2")
        for name in properties:
            self._add(library, name, self._properties, _address, _int)
        self._add(library, "cudaGetDeviceCount", self._count, _int_out)
        self._add(library, "cudaSetDevice", lambda index: 0 if index == 0 else 101, _int)
        self._add(library, "cudaDeviceGetAttribute", self._attribute, _int_out, _int, _int)
        for name in ("cudaRuntimeGetVersion", "cudaDriverGetVersion"):
            self._add(library, name, self._version, _int_out)
        self._add(library, "cudaMalloc", self._malloc, _address_out, _size)
        self._add(library, "cudaFree", self._free, _address)
        copy = (_address, _address, _size, _int, _address)
        self._add(library, "cudaMemcpyAsync", self._copy, *copy)
        self._add(library, "cudaStreamCreate", self._stream, _address_out)
        self._add(library, "cudaStreamSynchronize", self._synchronize, _address)
        self._add(library, "cudaStreamDestroy", self._destroy, _address)
        texts = {code: ctypes.create_string_buffer(text) for code, text in _TEXTS.items()}
        library.cudaGetErrorString = ctypes.CFUNCTYPE(_address, _int)(
            lambda code: ctypes.addressof(texts[code])
        )
        return library

    def put(self, stream: int, work: Callable[[], int]) -> bool:
        """Have work wait on a stream; it returns a status."""
        if stream not in self.streams:
            return False
        self.streams[stream].append(work)
        return True

    def has(self, address: int, size: int) -> bool:
        """Whether so many bytes are allocated from this address."""
        return address in self.memory and len(self.memory[address]) >= size

    def _add(
        self, library: SimpleNamespace, name: str, function: Callable[..., int], *kinds: type
    ) -> None:
        setattr(library, name, ctypes.CFUNCTYPE(_int, *kinds)(function))

    def _properties(self, target: int, index: int) -> int:
        if index:
            return 101
        name = self.name.encode() + b"\0"
        struct = name + b"\xee" * ({11: 728, 12: 1032}.get(self.version // 1000, 1008) - len(name))
        ctypes.memmove(target, struct, len(struct))
        return OK

    def _count(self, found: "ctypes._Pointer[ctypes.c_int]") -> int:
        found[0] = self.devices
        return OK if self.devices else NO_DEVICE

    def _attribute(self, found: "ctypes._Pointer[ctypes.c_int]", which: int, _: int) -> int:
        found[0] = {75: self.capability[0], 76: self.capability[1]}[which]
        return OK

    def _version(self, found: "ctypes._Pointer[ctypes.c_int]") -> int:
        found[0] = self.version
        return OK

    def _malloc(self, found: "ctypes._Pointer[ctypes.c_void_p]", size: int) -> int:
        self._next += 0x10000000
        self.memory[self._next] = bytearray(size)
        found[0] = self._next
        return OK

    def _free(self, address: int | None) -> int:
        return OK if address is None or self.memory.pop(address, None) is not None else 1

    def _stream(self, found: "ctypes._Pointer[ctypes.c_void_p]") -> int:
        self._next += 0x10000000
        self.streams[self._next] = []
        found[0] = self._next
        return OK

    def _copy(self, target: int, source: int, size: int, kind: int, stream: int) -> int:
        if kind == 1:
            staged = ctypes.string_at(source, size)  # CUDA stages what lies in ordinary memory

            def work() -> int:
                if not self.has(target, size):
                    return ILLEGAL_ADDRESS
                self.memory[target][:size] = staged
                return OK
        else:

            def work() -> int:
                if not self.has(source, size):
                    return ILLEGAL_ADDRESS
                ctypes.memmove(target, bytes(self.memory[source][:size]), size)
                return OK

        return OK if self.put(stream, work) else INVALID_HANDLE

    def _synchronize(self, stream: int) -> int:
        if stream not in self.streams:
            return INVALID_HANDLE
        waiting, self.streams[stream] = self.streams[stream], []
        return next((status for status in [work() for work in waiting] if status), OK)

    def _destroy(self, stream: int) -> int:
        return OK if self.streams.pop(stream, None) is not None else INVALID_HANDLE
