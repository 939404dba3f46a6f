"""ONNX models through onnxruntime."""

import json
import os
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError, RuntimeMissingError
from edgeflare_agent.identity import package_version
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.install_hints import how_to_install, is_installed
from edgeflare_agent.runtimes.base import (
    THREADS,
    Option,
    Runtime,
    counted_names,
    import_library,
    is_options,
)

_SEVERITY_ERROR = 3
_CPU = "CPUExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_ON_NVIDIA = (_TENSORRT, "CUDAExecutionProvider")
_ASSIGNMENT = "get_provider_graph_assignment_info"
"""The session's method that tells each node's provider: in onnxruntime 1.31, not in 1.17."""
_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}
_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "none": "ORT_DISABLE_ALL",
}


def _is_list_of_names(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(name, str) for name in value)
    )


def _is_options_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_options, value.values()))


class OnnxRuntime(Runtime):
    """Runs ``.onnx`` files, node after node; `threads` is the size of both of its pools.

    `providers`: execution providers, the preferred one first; one that can't serve is an error, and
    so is a node that none of them can run, which the library gives to the CPU. With
    `allow_fallback` it may. A list that names the CPU allows it some of the nodes, not all.
    `provider_options`: {provider: {option: value}} of the library; the TensorRT provider keeps its
    engines in `root`/engines/ort where nothing else is given. `graph_optimization`: how far the
    library may rewrite the graph before it runs it, "all", "extended", "basic" or "none"; the
    answers' last bits depend on it. `exact_int8`: sum products of unsigned and signed bytes exactly
    where the processor (x86-64 without VNNI) would saturate the sums.
    """

    name = "onnx"
    shareable = True
    takes_several = True
    known_options: ClassVar[Mapping[str, Option]] = {
        "threads": THREADS,
        "providers": Option([_CPU], "a list of execution providers", _is_list_of_names),
        "allow_fallback": Option(False, "true or false", lambda value: isinstance(value, bool)),
        "provider_options": Option(
            {}, "an object {provider: {option: value}}", _is_options_by_name
        ),
        "graph_optimization": Option(
            "all", "all, extended, basic or none", lambda value: value in tuple(_LEVELS)
        ),
        "exact_int8": Option(False, "true or false", lambda value: isinstance(value, bool)),
    }

    def _prepare(self) -> None:
        if not is_installed("onnxruntime"):
            raise RuntimeMissingError(
                "no runtime for ONNX models is installed: {}".format(how_to_install("onnxruntime"))
            )
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when the library is loaded
        self._library = import_library("onnxruntime")
        self._library.set_default_logger_severity(_SEVERITY_ERROR)
        self.failures = library_errors()

    def _load(self) -> None:
        providers = list(self.options["providers"])
        self._check_providers(providers)
        if any(provider in _ON_NVIDIA for provider in providers):
            preload = getattr(self._library, "preload_dlls", None)
            if preload is not None:  # CUDA that pip installed is found only so
                preload()
        settings = session_settings(self._library, self.options)
        self._nodes: Optional[Dict[str, List[str]]] = None
        if providers == [_CPU]:
            self._open(settings)
        else:
            self._open_counting(settings)
            self._refuse_fallback()
        self.inputs = [_described(node) for node in self._session.get_inputs()]
        self.outputs = [
            _described(node) for node in self._session.get_outputs() if _is_numeric(node)
        ]
        self._names = [output.name for output in self.outputs]
        if not self.outputs:
            raise ModelError("{} has no output that is a tensor of numbers".format(self.path))
        self.metadata = dict(self._session.get_modelmeta().custom_metadata_map)

    def _check_providers(self, providers: List[str]) -> None:
        available = self._library.get_available_providers()
        for provider in providers:
            if provider not in available:
                raise RequestError(
                    "no execution provider is called {!r} here; there are {}".format(
                        provider, ", ".join(available)
                    )
                )
        for provider in self.options["provider_options"]:
            if provider not in providers:
                raise RequestError(
                    "provider_options names {!r}, which is not among the providers ({})".format(
                        provider, ", ".join(providers)
                    )
                )

    def _options_of(self, provider: str) -> Dict[str, Any]:
        """Return a provider's options, with the place of the TensorRT provider's engines."""
        options = dict(self.options["provider_options"].get(provider, {}))
        if provider == _TENSORRT and "trt_engine_cache_enable" not in options:
            folder = os.path.join(self.root, "engines", "ort")
            os.makedirs(folder, 0o700, exist_ok=True)
            options = {
                "trt_engine_cache_path": folder,
                **options,
                "trt_engine_cache_enable": True,
            }
        return options

    def _open(self, settings: Any) -> None:
        """Start the session; raise RuntimeMissingError where a requested provider doesn't start."""
        providers = self.options["providers"]
        self._session = self._library.InferenceSession(
            self.path,
            settings,
            providers=list(providers),
            provider_options=[self._options_of(provider) for provider in providers],
            enable_fallback=0,  # else a bad option sends the model to another provider
        )
        serving = self._session.get_providers()
        absent = [provider for provider in providers if provider not in serving]
        if absent:
            raise RuntimeMissingError(
                "onnxruntime could not start {} and fell back to {}: the libraries that it needs "
                "(for an NVIDIA GPU CUDA, cuDNN, TensorRT), of the versions that onnxruntime {} "
                "was built for, or the hardware are missing; see what is printed by 'import onnxruntime; "
                "onnxruntime.print_debug_info()', or take it out of `providers`".format(
                    ", ".join(absent), ", ".join(serving), self._library.__version__
                )
            )

    def _open_counting(self, settings: Any) -> None:
        """Start the session; set `_nodes`.

        That is the operators of the nodes that each provider runs, None where it isn't known. A
        library that doesn't tell it profiles one inference instead, of zeros.
        """
        if hasattr(self._library.InferenceSession, _ASSIGNMENT):
            settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
            self._open(settings)
            self._nodes = _by_provider(
                (provider.ep_name, node.op_type)
                for provider in getattr(self._session, _ASSIGNMENT)()
                for node in provider.get_nodes()
            )
            return
        with TemporaryDirectory(prefix="edgeflare-") as folder:
            settings.enable_profiling = True
            settings.profile_file_prefix = os.path.join(folder, "profile")
            self._open(settings)
            self._nodes = _profiled_nodes(self._session, self.failures)

    def _refuse_fallback(self) -> None:
        """Raise RuntimeMissingError unless the requested providers run the model's nodes."""
        if self.options["allow_fallback"]:
            return
        providers = self.options["providers"]
        asked = ", ".join(provider for provider in providers if provider != _CPU)
        if self._nodes is None:
            raise RuntimeMissingError(
                "onnxruntime {} doesn't tell whether {} runs {}, or the CPU: install a newer one "
                "(1.31 tells it), or accept either with the runtime option allow_fallback = "
                "true".format(self._library.__version__, asked, self.path)
            )
        total = sum(map(len, self._nodes.values()))
        on_cpu = self._nodes.get(_CPU, [])
        if on_cpu and (len(on_cpu) == total or _CPU not in providers):
            raise RuntimeMissingError(
                "{} can't run {} of the {} nodes of {} ({}), and onnxruntime gives them to the CPU: "
                "take a model or a build of onnxruntime with which it can, take it out of "
                "`providers`, or accept the CPU with the runtime option allow_fallback = "
                "true".format(asked, len(on_cpu), total, self.path, counted_names(on_cpu))
            )

    def _in_effect(self) -> Dict[str, Any]:
        package, version = package_version("onnxruntime", "onnxruntime-gpu")
        given = self.options["provider_options"]
        nodes = (
            None if self._nodes is None else {name: len(ops) for name, ops in self._nodes.items()}
        )
        return {
            "package": package,
            "version": version if version != "unknown" else self._library.__version__,
            "providers": self._session.get_providers(),
            **({} if self.options["providers"] == [_CPU] else {"nodes": nodes}),
            **({"provider_options": given} if given else {}),
            "graph_optimization": self.options["graph_optimization"],
            **({"exact_int8": True} if self.options["exact_int8"] else {}),
        }

    def _infer(self, tensor: Array) -> List[Array]:
        return list(self._session.run(self._names, {self.inputs[0].name: tensor}))

    def _infer_several(self, tensors: List[Array]) -> List[Array]:
        given = {info.name: tensor for info, tensor in zip(self.inputs, tensors)}
        return list(self._session.run(self._names, given))

    def _free(self) -> None:
        del self._session


def _by_provider(nodes: Iterable[Tuple[str, str]]) -> Dict[str, List[str]]:
    """Return {provider: its operators} of pairs of provider and operator."""
    found: Dict[str, List[str]] = {}
    for provider, operator in nodes:
        found.setdefault(provider, []).append(operator)
    return dict(sorted(found.items()))


def _profiled_nodes(session: Any, failures: Any) -> Optional[Dict[str, List[str]]]:
    """Return what `_nodes` holds by one profiled inference; None where that fails."""
    try:
        zeros = {
            node.name: np.zeros(
                [size if isinstance(size, int) else 1 for size in node.shape],
                _described(node).dtype,
            )
            for node in session.get_inputs()
        }
        session.run(None, zeros)
    except (TypeError, *failures):
        return None
    finally:
        path = session.end_profiling()
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    ran = {
        (event["name"], event["args"]["provider"], event["args"].get("op_name", "unnamed"))
        for event in events
        if event.get("cat") == "Node" and event.get("args", {}).get("provider")
    }
    return _by_provider((provider, operator) for _, provider, operator in sorted(ran))


def session_settings(library: Any, options: Mapping[str, Any]) -> Any:
    """Return the library's session options for `threads`, `graph_optimization`, `exact_int8`."""
    settings = library.SessionOptions()
    settings.intra_op_num_threads = options["threads"]
    settings.inter_op_num_threads = options["threads"]
    level = _LEVELS[options["graph_optimization"]]
    settings.graph_optimization_level = getattr(library.GraphOptimizationLevel, level)
    settings.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    settings.log_severity_level = _SEVERITY_ERROR
    if options["exact_int8"]:
        settings.add_session_config_entry("session.x64quantprecision", "1")
    return settings


def library_errors() -> Any:
    """Return every exception class of onnxruntime, and the built-in ones that it raises."""
    state = import_library("onnxruntime.capi.onnxruntime_pybind11_state")
    own = [
        value
        for value in vars(state).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    return (*own, ValueError, RuntimeError)


def _is_numeric(node: Any) -> bool:
    return str(node.type).startswith("tensor(") and node.type != "tensor(string)"


def _described(node: Any) -> TensorInfo:
    dtype = _DTYPES.get(node.type, node.type)
    if _is_numeric(node) and dtype == node.type:
        dtype = node.type[len("tensor(") : -1]
    return TensorInfo(
        name=node.name,
        shape=tuple(n if isinstance(n, int) else None for n in node.shape),
        dtype=dtype,
    )
