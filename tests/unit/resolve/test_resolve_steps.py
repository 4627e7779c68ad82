"""Every step does what its row says, and the table shows them all."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.resolve import Resolution, engine_names, find_engine, known_releases, resolve
from analysis.resolve.base import Launch
from analysis.resolve.table import COLUMNS, page, rows
from collector.domain.drafts import ModelConfig
from collector.domain.errors import UnknownName
from collector.domain.versions import Release
from tests.unit.resolve.test_resolve_oracle import entries, predict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
LATENT = {"kv_lora_rank": 512}


@cache
def cases(engine: str) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((HERE / f"{engine}_steps.yaml").read_text(encoding="utf-8"))


def model(case: dict[str, Any], whose: str, default: dict[str, Any]) -> ModelConfig | None:
    """The model of a case; one that says ``null`` is not known."""
    given = case.get(whose, default)
    if given is None:
        return None
    if isinstance(given, str):
        latent = LATENT if given.startswith(("Deepseek", "Kimi")) else {}
        return ModelConfig("config.json", {"architectures": [given], **latent})
    return ModelConfig("config.json", given)


TARGETS = {
    "sglang": LLAMA,
    "vllm": {**LLAMA, "max_position_embeddings": 131072, "vocab_size": 128256},
    "llamacpp": {"general.architecture": "qwen3", "vocab_size": 151936},
    "tensorrt-llm": {**LLAMA, "num_hidden_layers": 32},
}
DRAFTS = {
    "sglang": {"architectures": ["LlamaForCausalLMEagle3"]},
    "vllm": {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "max_position_embeddings": 2048},
    "llamacpp": {"general.architecture": "qwen3", "vocab_size": 151936},
}
MODELS = {"sglang": {"model_path": "some/model"}, "vllm": {"model": "some/model"}}
CASES = [(engine, name) for engine in engine_names() for name in cases(engine)]


def outcome(engine: str, case: dict[str, Any]) -> Resolution:
    return resolve(
        engine,
        {**MODELS.get(engine, {}), **case["requested"]},
        release=Release.parse(str(case["release"])),
        environment=case.get("environment", {}),
        target=model(case, "target", TARGETS.get(engine, LLAMA)),
        draft=model(case, "draft", DRAFTS.get(engine, LLAMA)),
        device=case.get("device", "h100"),
    )


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_step(engine: str, name: str) -> None:
    """The case is named after its step, which is what does it."""
    case = cases(engine)[name]
    resolution = outcome(engine, case)
    assert [item.message for item in resolution.rejections] == ([case["refused"]] if "refused" in case else [])
    assert name.split(maxsplit=1)[0] in doers(resolution) or "depends" in case or "nothing" in case
    for flag, value in case.get("expect", {}).items():
        assert resolution.effective[flag] == value
    for flag in case.get("depends", ()):
        assert resolution.depends[flag]
        assert flag not in resolution.effective
    if "graphs" in case:
        config = resolution.effective["cuda_graph_config"]
        assert [config[phase]["backend"] for phase in ("decode", "prefill")] == case["graphs"]
    if "says" in case:
        assert case["says"] in resolution.announced
    assert set(case.get("ignores", ())) <= {item.flag for item in resolution.ignored}
    assert set(case.get("remarks", ())) <= {item.flag for item in resolution.remarks}


def doers(resolution: Resolution) -> set[str]:
    """The steps that left a trace in a resolution; one that only leaves things open, or only prints, does not."""
    items = (*resolution.changes, *resolution.ignored, *resolution.remarks, *resolution.rejections)
    return {item.step.id for item in items}


def traces(launch: Launch) -> int:
    """How much has happened to a launch so far."""
    lists = (launch.changes, launch.announced, launch.ignored, launch.remarks, launch.rejections, launch.depends)
    return sum(map(len, lists))


@pytest.mark.parametrize("engine", engine_names())
def test_every_step_is_reached(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, str, str]] = set()
    run = Launch.run

    def watched(launch: Launch, step: Any) -> None:
        before = traces(launch)
        try:
            run(launch, step)
        finally:
            if traces(launch) > before:
                reached.add((step.id, step.title, str(step.releases)))

    monkeypatch.setattr(Launch, "run", watched)
    for case in cases(engine).values():
        outcome(engine, case)
    for entry in (*entries("sglang"), *entries("sglang-wide")) if engine == "sglang" else ():
        predict(entry)
    known = find_engine(engine)
    assert known is not None
    never = [step for step in known.steps if (step.id, step.title, str(step.releases)) not in reached]
    assert [f"{step.id} {step.title} ({step.releases})" for step in never] == []


@pytest.mark.parametrize("engine", engine_names())
def test_rows_are_complete(engine: str) -> None:
    table = rows(engine)
    assert table
    for row in table:
        assert all(row.cells()), row
        assert row.id.startswith(f"{engine}-")
    assert COLUMNS[0] == "id"


@pytest.mark.parametrize("engine", engine_names())
def test_page_is_up_to_date(engine: str) -> None:
    assert (ROOT / "docs" / f"resolve-{engine}.md").read_text(encoding="utf-8") == page(engine), "run: make docs"


def test_rows_of_one_release() -> None:
    of_release = rows("sglang", Release.parse("0.5.9"))
    assert set(of_release) < set(rows("sglang"))
    assert "sglang-51" in {row.id for row in of_release}
    assert "sglang-52" not in {row.id for row in of_release}


def test_unknown_engine_has_no_table() -> None:
    with pytest.raises(UnknownName, match="not known"):
        rows("nothing")


def test_published_rules_are_steps() -> None:
    """The 105 rules of the published table, but those that are parts of other steps or change nothing."""
    known = {row.id for row in rows("sglang")}
    parts = {21, 47, 54, 60, 74, 85, 86}
    assert [number for number in range(1, 106) if f"sglang-{number}" not in known and number not in parts] == []


@pytest.mark.parametrize(("engine", "rules"), [("vllm", 89), ("llamacpp", 30), ("tensorrt-llm", 21)])
def test_every_published_rule_is_a_step(engine: str, rules: int) -> None:
    known = {row.id for row in rows(engine)}
    assert [number for number in range(1, rules + 1) if f"{engine}-{number}" not in known] == []
    tested = {name.split(maxsplit=1)[0] for name in cases(engine)}
    assert [number for number in range(1, rules + 1) if f"{engine}-{number}" not in tested] == []


@pytest.mark.parametrize(("engine", "count"), [("sglang", 30), ("vllm", 31), ("llamacpp", 16), ("tensorrt-llm", 5)])
def test_releases_read(engine: str, count: int) -> None:
    read = known_releases(engine)
    assert list(read) == sorted(read)
    assert len(read) == count
