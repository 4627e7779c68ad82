"""vLLM's arguments as its log states them, under the names of its own argument line.

Three forms: ``Initializing a V1 LLM engine (v0.32.0) with config: …`` says what runs,
``non-default args: {…}`` (0.9.0 and later) and ``args: Namespace(…)`` (to 0.8.5) what was asked.
Settings inside ``speculative_config`` and ``compilation_config`` are named with a dot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from collector.formats.literals import KEY, NAME, read_fields
from collector.launch.nested import NESTED, flattened

_SPECULATIVE = re.compile(r"SpeculativeConfig\(")
_GRAPH_MODE = re.compile(r"'cudagraph_mode': <CUDAGraphMode\.(\w+): ")
_GRAPH_SIZE = re.compile(r"['\"]max_cudagraph_capture_size['\"]: (\d+)")
_ENUM = re.compile(r"(?:LoadFormat|torch)\.(\w+)")
# Names in the engine's configuration line, and the options that set them.
_OPTIONS: Final = {
    "max_seq_len": "max_model_len",
    "device_config": "device",
    "chunked_prefill_enabled": "enable_chunked_prefill",
    "num_spec_tokens": "num_speculative_tokens",
    "draft_model": "model",
}
_ALIASES: Final = {"model_tag": "model"}
_UNSET: Final[tuple[Any, ...]] = (None, False, "auto", [], {})


def running(config: str) -> dict[str, Any]:
    """What the engine runs with, from its configuration line."""
    values = read_fields(config + ")", 0, NAME, ")").values
    named: dict[str, Any] = {}
    for name, value in values.items():
        option = _OPTIONS.get(name, name)
        if name == "speculative_config":
            named |= _speculative(value)
        elif name == "compilation_config":
            named |= _compilation(value)
        else:
            named[option] = _plain(value)
    return named


def asked(given: str) -> dict[str, Any]:
    """What was asked for, from the dictionary of arguments that differ from the defaults."""
    return _named(read_fields(given, 1, KEY, "}").values)


def asked_of_all(given: str) -> dict[str, Any]:
    """What was asked for, from a line with all arguments: those that are set to something."""
    values = read_fields(given, 0, NAME, ")").values
    return _named(
        {name: value for name, value in values.items() if value not in _UNSET and name != "dispatch_function"}
    )


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """One name for each argument; nested ones as mappings even where they were printed as text."""
    return flattened(
        {_ALIASES.get(name, name): _mapping(value) if name in NESTED else value for name, value in values.items()}
    )


def _mapping(value: Any) -> Any:
    """A nested argument that holds objects or JSON stays text when it is evaluated; its settings are read one by one."""
    if isinstance(value, str) and value.startswith("{"):
        return read_fields(value, 1, KEY, "}").values or value
    return value


def _speculative(value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        return {"speculative_config": value}
    match = _SPECULATIVE.match(value)
    if match is None:
        return {"speculative_config": value}
    inner = read_fields(value, match.end(), NAME, ")").values
    return {f"speculative_config.{_OPTIONS.get(key, key)}": item for key, item in inner.items()}


def _compilation(value: Any) -> dict[str, Any]:
    text = str(value)
    named: dict[str, Any] = {}
    mode, size = _GRAPH_MODE.search(text), _GRAPH_SIZE.search(text)
    if mode is not None:
        named["compilation_config.cudagraph_mode"] = mode[1]
    if size is not None:
        named["compilation_config.max_cudagraph_capture_size"] = int(size[1])
    return named


def _plain(value: Any) -> Any:
    """Enumerations as the options spell them: ``torch.bfloat16`` is ``bfloat16``."""
    if not isinstance(value, str):
        return value
    match = _ENUM.fullmatch(value)
    return value if match is None else match[1].lower()
