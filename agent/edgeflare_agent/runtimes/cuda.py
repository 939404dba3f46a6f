"""The few functions of the CUDA runtime library that TensorRT's caller needs, through ctypes."""

import ctypes
import os
import sys
from glob import glob
from typing import Any, List

from edgeflare_agent.arrays import Array

SONAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so")
_FOLDERS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib")
_OF_PACKAGES = ("nvidia/cuda_runtime/lib", "nvidia/cu*/lib")
"""Where pip's packages put the library, below ``site-packages``."""

_SUCCESS = 0
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_NAME_BYTES = 256
_PROPERTIES_BYTES = 1 << 14
"""More than cudaDeviceProp has in any version; it begins with the name in all of them."""

_Pointer = ctypes.POINTER(ctypes.c_void_p)
_Number = ctypes.POINTER(ctypes.c_int)
_SIGNATURES = {
    "cudaGetDeviceCount": (_Number,),
    "cudaSetDevice": (ctypes.c_int,),
    "cudaDeviceGetAttribute": (_Number, ctypes.c_int, ctypes.c_int),
    "cudaRuntimeGetVersion": (_Number,),
    "cudaDriverGetVersion": (_Number,),
    "cudaMalloc": (_Pointer, ctypes.c_size_t),
    "cudaFree": (ctypes.c_void_p,),
    "cudaMemcpyAsync": (
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
        *(ctypes.c_int, ctypes.c_void_p),
    ),
    "cudaStreamCreate": (_Pointer,),
    "cudaStreamSynchronize": (ctypes.c_void_p,),
    "cudaStreamDestroy": (ctypes.c_void_p,),
}


class CudaError(Exception):
    """The CUDA runtime library is missing, finds no GPU, or a call of it failed."""


class Cuda:
    """The first GPU, and memory on it. Addresses and streams are whole numbers."""

    def __init__(self, library: Any) -> None:
        """Take a loaded library. Raises CudaError where it finds no GPU."""
        self._library = library
        for name, kinds in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = list(kinds), ctypes.c_int
        library.cudaGetErrorString.argtypes = [ctypes.c_int]
        library.cudaGetErrorString.restype = ctypes.c_char_p
        if not self._number("cudaGetDeviceCount"):
            raise CudaError("CUDA finds no GPU")
        self._call("cudaSetDevice", 0)

    @property
    def device_name(self) -> str:
        """The GPU's name."""
        properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        names = ("cudaGetDeviceProperties_v2", "cudaGetDeviceProperties")
        name = next(name for name in names if hasattr(self._library, name))
        function = getattr(self._library, name)
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_int
        self._call(name, properties, 0)
        return properties.raw[:_NAME_BYTES].split(b"\0", 1)[0].decode(errors="replace")

    @property
    def compute_capability(self) -> str:
        """The GPU's compute capability, such as ``8.7``."""
        return "{}.{}".format(
            self._number("cudaDeviceGetAttribute", _CAPABILITY_MAJOR, 0),
            self._number("cudaDeviceGetAttribute", _CAPABILITY_MINOR, 0),
        )

    @property
    def version(self) -> str:
        """The runtime library's version, such as ``12.6``."""
        return _version(self._number("cudaRuntimeGetVersion"))

    @property
    def driver_version(self) -> str:
        """The newest CUDA version that the driver serves."""
        return _version(self._number("cudaDriverGetVersion"))

    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes on the GPU."""
        return self._address("cudaMalloc", size)

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cudaFree", address)

    def upload(self, address: int, array: Array, stream: int) -> None:
        """Copy a contiguous array to the GPU; done when the stream is."""
        self._copy(address, array.ctypes.data, array.nbytes, _HOST_TO_DEVICE, stream)

    def download(self, array: Array, address: int, stream: int) -> None:
        """Fill a contiguous array from the GPU; it must live until the stream is done."""
        self._copy(array.ctypes.data, address, array.nbytes, _DEVICE_TO_HOST, stream)

    def new_stream(self) -> int:
        """Return a stream of its own."""
        return self._address("cudaStreamCreate")

    def synchronize(self, stream: int) -> None:
        """Wait until all that was put on the stream is done; its errors come out here."""
        self._call("cudaStreamSynchronize", stream)

    def destroy_stream(self, stream: int) -> None:
        """Give a stream back."""
        self._call("cudaStreamDestroy", stream)

    def _copy(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        if size:
            self._call("cudaMemcpyAsync", target, source, size, kind, stream)

    def _address(self, name: str, *arguments: Any) -> int:
        found = ctypes.c_void_p()
        self._call(name, ctypes.byref(found), *arguments)
        return int(found.value or 0)

    def _number(self, name: str, *arguments: Any) -> int:
        found = ctypes.c_int()
        self._call(name, ctypes.byref(found), *arguments)
        return found.value

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != _SUCCESS:
            text = self._library.cudaGetErrorString(status) or b"no text"
            raise CudaError("{} failed: {} ({})".format(name, text.decode(), status))


class DeviceBuffer:
    """Memory on the GPU that grows as it is needed."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._address = 0
        self._size = 0

    def holding(self, size: int) -> int:
        """Return the address of at least `size` bytes; what was there may be lost."""
        if size > self._size or not self._address:
            self.free()
            self._address, self._size = self._cuda.allocate(max(size, 1)), size
        return self._address

    def free(self) -> None:
        """Give the memory back. Safe to repeat."""
        if self._address:
            address, self._address, self._size = self._address, 0, 0
            self._cuda.free(address)


def open_cuda() -> Cuda:
    """Return the GPU by the first library that serves it. Raises CudaError where none does."""
    problems: List[str] = []
    for path in _candidates():
        try:
            return Cuda(ctypes.CDLL(path))
        except OSError:
            continue
        except (CudaError, AttributeError) as error:
            problems.append("{}: {}".format(path, error))
    raise CudaError(
        problems[0] if problems else "no CUDA runtime library ({}) is found".format(SONAMES[1])
    )


def _candidates() -> List[str]:
    packages = [os.path.join(path, part) for path in sys.path if path for part in _OF_PACKAGES]
    folders = [folder for pattern in (*packages, *_FOLDERS) for folder in sorted(glob(pattern))]
    return [*SONAMES, *(path for folder in folders for path in glob(folder + "/libcudart.so.*"))]


def _version(number: int) -> str:
    return "{}.{}".format(number // 1000, number % 1000 // 10)
