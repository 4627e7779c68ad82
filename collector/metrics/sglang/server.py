"""SGLang's information endpoint: what it runs with, and how it was launched.

Source: SGLang, ``srt/entrypoints/http_server.py: get_server_info``, releases 0.4.4 to 0.5.23. The
answer holds every field of ``ServerArgs`` after resolution, beside a few that are none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from collector.domain.arguments import Argument, Arguments, LaunchCommand
from collector.domain.errors import InputError
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text, redact_value
from collector.domain.versions import Release
from collector.launch import parse_launch
from collector.metrics.base import EngineInfo
from collector.metrics.sglang.names import MEAN_LENGTH

# Fields beside the arguments. The second group stands at the top up to 0.4.5, then per rank.
_NO_ARGUMENTS: Final = frozenset(
    {
        "internal_states", "version", "status", "launch_command", "startup_time", "kv_events", "frontend", "env_vars",
        "scheduler_pids", "max_total_num_tokens", "max_req_input_len", "hicache_object_layout",
        "last_gen_throughput", MEAN_LENGTH, "memory_usage", "use_mla_backend", "load",
    }
)  # fmt: skip
_LAUNCHER: Final = "python -m sglang.launch_server "
_SHOWN_CHARACTERS: Final = 400


def read_server_info(document: Mapping[str, Any], source: str) -> EngineInfo:
    """Effective and (0.5.20+) requested arguments, the release, and mean lengths by data-parallel rank."""
    fields = {name: redact_value(name, value) for name, value in document.items() if name not in _NO_ARGUMENTS}
    arguments = Arguments(
        {
            name: Argument(name, effective=value, effective_evidence=Evidence(source, None, _fragment(name, value)))
            for name, value in fields.items()
        }
    )
    launch, notes = _launch(document.get("launch_command"), source)
    if launch is not None:
        arguments = arguments.with_launch(launch)
    ranks = document.get("internal_states")
    states = [state for state in ranks if isinstance(state, dict)] if isinstance(ranks, list) else [document]
    means = {index: _number(state.get(MEAN_LENGTH)) for index, state in enumerate(states)}
    return EngineInfo(
        engine_version=_release(document.get("version")),
        arguments=arguments,
        launch=launch,
        life="" if document.get("random_seed") is None else str(document["random_seed"]),
        mean_lengths={index: mean for index, mean in means.items() if mean is not None},
        notes=notes,
    )


def _launch(command: Any, source: str) -> tuple[LaunchCommand | None, tuple[str, ...]]:
    """The launch command: options alone where the server was started by its command line."""
    if not isinstance(command, str) or not command.strip():
        return None, ()
    text = _LAUNCHER + command if command.lstrip().startswith("-") else command
    try:
        launch = parse_launch(text, source)
    except InputError as error:
        return None, (f"launch_command was not understood: {error.what}",)
    return replace(launch, text=redact_text(command.strip()), line=None), ()


def _fragment(name: str, value: Any) -> str:
    text = f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False, default=str)}"
    return redact_text(text[:_SHOWN_CHARACTERS])


def _release(text: Any) -> Release | None:
    try:
        return Release.parse(str(text))
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
