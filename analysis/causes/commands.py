"""Commands of experiments: the launch command with one thing changed, and what is typed afterwards."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Final

from analysis.causes.facts import Facts
from collector.domain.versions import Release

_PROGRAM: Final = {
    "sglang": "python3 -m sglang.launch_server OPTIONS",
    "vllm": "vllm serve MODEL OPTIONS",
    "llamacpp": "llama-server OPTIONS",
}
_RENAMED: Final = Release.parse("b9093")
"""The first build of llama.cpp that was read where ``--draft-max`` has its later name."""
_SPACES: Final = re.compile(r"(?:\\?\s)+")
_INSIDE: Final = "speculative_config."


def relaunch(facts: Facts, *options: str, without: Sequence[str] = ()) -> str:
    """The run's launch command with these options added or replaced, and others taken out; a sketch where it is not known."""
    launch = facts.run.record.launch
    command = launch.text.strip() if launch is not None else _PROGRAM.get(facts.engine, "LAUNCH_COMMAND")
    command = _SPACES.sub(" ", command)
    for name in (*without, *(option.split()[0] for option in options)):
        command = _without(command, name)
    if launch is None and without:
        options = (*options, f"  # without {' '.join(without)}")
    return " ".join((command, *options))


def _without(command: str, option: str) -> str:
    """A command without one option and its value."""
    name = "[-_]".join(map(re.escape, re.split("[-_]", option.lstrip("-"))))
    value = r"""(?:[=\s]+(?!-)(?:'[^']*'|"[^"]*"|\S+))?"""
    return re.sub(rf"\s--?{name}{value}(?=\s|$)", "", command)


def at_depth(facts: Facts, depth: int) -> str:
    """The launch command with another draft depth, as a chain."""
    if facts.engine == "sglang":
        return relaunch(
            facts,
            f"--speculative-num-steps {depth}",
            "--speculative-eagle-topk 1",
            f"--speculative-num-draft-tokens {depth + 1}",
        )
    if facts.engine == "vllm":
        return relaunch(facts, _speculative_config(facts, depth))
    if facts.engine == "llamacpp":
        last = facts.run.releases.last
        return relaunch(
            facts, f"{'--draft-max' if last is not None and last < _RENAMED else '--spec-draft-n-max'} {depth}"
        )
    setting = "max_draft_len in its options file" if facts.engine == "tensorrt-llm" else "draft depth"
    return f"{relaunch(facts)}  # {setting}: {depth}"


def _speculative_config(facts: Facts, depth: int) -> str:
    """VLLM's one option for drafting, with another depth and the rest as asked."""
    asked = {
        name.removeprefix(_INSIDE): value
        for name, value in facts.run.arguments.requested().items()
        if name.startswith(_INSIDE)
    }
    return f"--speculative-config {shlex.quote(json.dumps({**asked, 'num_speculative_tokens': depth}))}"


def without_speculation(facts: Facts) -> str:
    """The launch command without drafts."""
    asked = (name.partition(".")[0] for name in facts.run.arguments.requested())
    drafting = (name for name in asked if name.startswith(("speculative", "spec_", "model_draft", "hf_repo_draft")))
    return relaunch(facts, without=tuple(dict.fromkeys(drafting)) or ("--speculative-…",))


def without_prefix_reuse(facts: Facts) -> str:
    """The launch command without reuse of prompts."""
    option = {"sglang": "--disable-radix-cache", "llamacpp": "--no-cache-prompt"}
    return relaunch(facts, option.get(facts.engine, "--no-enable-prefix-caching"))


def compare(facts: Facts, other: str) -> str:
    """This run against the one of the experiment."""
    return f"draftscope compare {_source(facts)} {other}"


def replay(facts: Facts) -> str:
    """Judge a replay of the validation prompts."""
    accuracy = facts.value("validation_accuracy")
    promise = f"--validation-accuracy {accuracy:g}" if accuracy is not None else "--training TRAINING_LOG"
    return f"draftscope diagnose REPLAY_LOG {promise} --temperature 0"


def _source(facts: Facts) -> str:
    return shlex.quote(facts.run.record.source)
