"""Logs of real servers: a fault that was planted is the leading cause, and a sound server is offered none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analysis.causes.weighing import NONE_OF_THESE
from analysis.runner import diagnose
from collector.bundle import BundleOptions, read_bundle

LOGS = Path(__file__).parent.parent / "golden" / "logs"
LEADING = {
    "llamacpp/b8672-override-vocab-content": "vocabulary-map-wrong",
    "llamacpp/draft-mid-nmin": "draft-length-policy",
    "llamacpp/draft-mid-pmin": "draft-length-policy",
    "llamacpp/ngram-mod-defaults": "text-does-not-repeat",
    "llamacpp/override-md-without-spec-type-default-verbosity": "speculation-off",
    "llamacpp/override-vocab-content": "vocabulary-map-wrong",
    "llamacpp/removed-draft-max": "combination-refused",
    "sglang/0.5.11-override-draft-tokens": "flag-overridden",
    "sglang/0.5.11-refused-steps-only": "combination-refused",
    "sglang/0.5.9-eagle-for-eagle3": "draft-kind-mismatch",
    "sglang/0.5.9-override-draft-tokens": "flag-overridden",
    "vllm/refused-async-ngram": "combination-refused",
}
SOUND = (
    "llamacpp/b11549-draft-near",
    "llamacpp/baseline",
    "sglang/0.4.6.post5-eagle3",
    "sglang/0.5.11-eagle3",
    "sglang/0.5.11-eagle3-dp2",
    "sglang/0.5.19-eagle3",
    "sglang/0.5.19-ngram",
    "sglang/0.5.23-eagle3",
    "sglang/0.5.9-baseline",
    "sglang/0.5.9-eagle3",
    "sglang/0.5.9-eagle3-tree",
    "vllm/baseline",
    "vllm/draft-model",
    "vllm/eagle3",
    "vllm/ngram",
)


def offered(name: str, folder: Path) -> list[str]:
    shutil.copy(LOGS / name / "log.txt", folder / "input.log")
    diagnosis = diagnose(read_bundle([folder], BundleOptions()))
    assert diagnosis.crashes == ()
    return [cause.id for cause in diagnosis.causes if cause.id != NONE_OF_THESE]


@pytest.mark.parametrize("name", LEADING)
def test_the_planted_fault_leads(name: str, tmp_path: Path) -> None:
    assert offered(name, tmp_path)[0] == LEADING[name]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_server_is_offered_no_cause(name: str, tmp_path: Path) -> None:
    assert offered(name, tmp_path) == []
