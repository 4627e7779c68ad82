"""What is read from a log, in a form that people can compare line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collector.bundle import read_log
from collector.domain.runs import RunRecord

FOLDER = Path(__file__).parent
ARGUMENTS = (
    "model_path",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "max_running_requests",
    "disable_overlap_schedule",
    "decode_log_interval",
    "model",
    "speculative_config",
    "speculative_config.method",
    "speculative_config.model",
    "speculative_config.num_speculative_tokens",
    "speculative_config.max_model_len",
    "async_scheduling",
    "max_model_len",
    "parallel",
    "spec_type",
    "spec_draft_model",
    "spec_draft_n_max",
    "spec_draft_n_min",
    "spec_draft_p_min",
    "spec_ngram_map_k_size_m",
    "spec_ngram_mod_n_max",
)


def recordings(engine: str = "*") -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob(f"{engine}/*/log.txt"))


def as_read(folder: Path) -> dict[str, Any]:
    runs, reading = read_log(folder / "log.txt", source="log.txt")
    return {
        "reading": {
            "kind": reading.kind,
            "lines": reading.lines,
            "engine_lines": reading.engine_lines,
            "understood": reading.understood,
            "unread": {shape.shape: shape.count for shape in reading.unread_shapes},
            "torn_samples": reading.torn_samples,
            "notes": list(reading.notes),
        },
        "runs": [_run(run) for run in runs],
    }


def _run(run: RunRecord) -> dict[str, Any]:
    windows = run.windows
    stated = {"engine_version": str(run.engine_version)} if run.engine_version is not None else {}
    return {
        **stated,
        "release_range": str(run.release_range),
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "port": run.port,
        "arguments": {name: run.arguments.value(name) for name in ARGUMENTS if run.arguments.seen(name)},
        "fields": len(run.arguments),
        "events": [
            {"kind": event.kind, "line": event.evidence.line, "values": dict(event.values)} for event in run.events
        ],
        "prefills": len(run.prefills),
        "prefill_tokens": sum(window.new_tokens for window in run.prefills),
        "windows": len(windows),
        "units": sorted({window.unit for window in windows}),
        "verify_steps": sum(window.verify_steps or 0 for window in windows),
        "accepted_tokens": round(sum(window.accepted_tokens or 0 for window in windows), 3),
        "generated_tokens": round(sum(window.generated_tokens or 0 for window in windows), 3),
        "first_window": _rounded(windows[0]._asdict()) if windows else None,
        "last_window": _rounded(windows[-1]._asdict()) if windows else None,
    }


def _rounded(window: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in window.items()}
