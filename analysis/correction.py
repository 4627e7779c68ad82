"""A launch command of which nothing is overridden, ignored or refused, found by predicting it again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from analysis import words
from analysis.drafting import concerns_drafts
from analysis.resolve import Resolution
from collector.domain.arguments import METHOD_FLAGS, UNSEEN, LaunchCommand, Seen, Value, same_meaning

MOST_ATTEMPTS: Final = 12
"""Commands that are predicted in search of one that starts. Count; each takes milliseconds."""
METHODS: Final = frozenset({"model", "model_path", *METHOD_FLAGS})
"""Flags without which the command would be another deployment; they are not left out to make it start."""

_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "vllm": {
        "speculative_model": "speculative_config.model",
        "num_speculative_tokens": "speculative_config.num_speculative_tokens",
        "speculative_model_quantization": "speculative_config.quantization",
        "speculative_draft_tensor_parallel_size": "speculative_config.draft_tensor_parallel_size",
        "speculative_max_model_len": "speculative_config.max_model_len",
        "speculative_disable_by_batch_size": "speculative_config.disable_by_batch_size",
        "ngram_prompt_lookup_max": "speculative_config.prompt_lookup_max",
        "ngram_prompt_lookup_min": "speculative_config.prompt_lookup_min",
    },
    "llamacpp": {"draft_max": "spec_draft_n_max", "draft_min": "spec_draft_n_min"},
}
"""Flags of earlier releases of an engine, and where their settings stand now."""
_NGRAM: Final = "[ngram]"
"""What vLLM's ``--speculative-model`` was for drafts from the prompt."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One change to the command; ``after`` is unseen where the flag is left out."""

    flag: str
    before: Seen
    after: Seen
    why: str

    def document(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "flag": self.flag,
            "before": None if self.before is UNSEEN else self.before,
            "after": None if self.after is UNSEEN else self.after,
            "left_out": self.after is UNSEEN,
            "why": self.why,
        }


Predict = Callable[[LaunchCommand], Resolution]


def correct(
    launch: LaunchCommand, resolution: Resolution, predict: Predict
) -> tuple[LaunchCommand | None, tuple[Correction, ...]]:
    """The corrected command and what was changed; ``None`` where nothing is to correct or no way is known.

    A value that the engine changes again (a share of it, say) is left as it was asked.
    """
    if not resolution.releases:
        return None, ()
    started, made, resolution = _started(launch, resolution, predict)
    if started is None:
        return None, ()
    wanted = [*_ignored(started, resolution), *_overridden(started, resolution)]
    while wanted:
        after = predict(_applied(started, wanted))
        kept = [] if after.rejections else [item for item in wanted if _holds(item, after)]
        if kept == wanted:
            break
        wanted = kept
    made += wanted
    return (_applied(started, wanted), tuple(made)) if made else (None, ())


def _started(
    launch: LaunchCommand, resolution: Resolution, predict: Predict
) -> tuple[LaunchCommand | None, list[Correction], Resolution]:
    """A command that the engine does not refuse: with misspelt flags set right, or one flag at a time left out."""
    made: list[Correction] = []
    attempts = 0
    while resolution.rejections:
        before = resolution.rejections[0].message
        for candidate in _repairs(launch, before):
            attempts += 1
            if attempts > MOST_ATTEMPTS:
                return None, [], resolution
            changed = _applied(launch, candidate)
            again = predict(changed)
            if not again.rejections or again.rejections[0].message != before:
                launch, resolution = changed, again
                made += candidate
                break
        else:
            return None, [], resolution
    return launch, made, resolution


def _repairs(launch: LaunchCommand, message: str) -> Iterator[list[Correction]]:
    requested = launch.requested
    named = [name for name in requested if re.search(rf"(?<![\w-])(?:--)?{_pattern(name)}(?![\w-])", message)]
    for name in named:
        nearest = launch.nearest.get(words.flag(name))
        if nearest is not None:
            field = nearest.lstrip("-").replace("-", "_")
            yield [
                Correction(name, requested[name], UNSEEN, f"{words.flag(name)} does not exist"),
                Correction(field, UNSEEN, requested[name], f"{nearest} was probably meant"),
            ]
    yield from _completed_chain(launch)
    if launch.engine == "llamacpp" and requested.get("flash_attn") is True:
        yield [Correction("flash_attn", True, "on", "--flash-attn takes a value")]
    if any(name in _RENAMED.get(launch.engine, ()) for name in named):
        yield _renamed(launch)
    drafting = [name for name in requested if concerns_drafts(name) and name not in named]
    for name in [*named, *drafting]:
        if name not in METHODS:
            yield [Correction(name, requested[name], UNSEEN, f"the engine refuses the command with it: {message}")]


def _renamed(launch: LaunchCommand) -> list[Correction]:
    """Settings that stand under the names of an earlier release, all of them under those of today."""
    made: list[Correction] = []
    for old, new in _RENAMED[launch.engine].items():
        if old not in launch.requested:
            continue
        asked = launch.requested[old]
        made.append(Correction(old, asked, UNSEEN, f"{words.flag(old)} is that of earlier releases"))
        field, value = (new, asked) if asked != _NGRAM else ("speculative_config.method", "ngram")
        if field not in launch.requested:
            made.append(Correction(field, UNSEEN, value, f"{words.flag(field)} took the place of {words.flag(old)}"))
    return made


def _completed_chain(launch: LaunchCommand) -> Iterator[list[Correction]]:
    """SGLang wants steps, top-k and draft tokens together; a chain of the steps asked for is what was meant."""
    steps = launch.requested.get("speculative_num_steps")
    if launch.engine == "sglang" and isinstance(steps, int):
        chain = {"speculative_eagle_topk": 1, "speculative_num_draft_tokens": steps + 1}
        why = "steps, top-k and draft tokens are given together or not at all"
        made = [Correction(name, UNSEEN, value, why) for name, value in chain.items() if name not in launch.requested]
        if made:
            yield made


def _pattern(name: str) -> str:
    return re.escape(name).replace("_", "[-_]")


def _ignored(launch: LaunchCommand, resolution: Resolution) -> Iterator[Correction]:
    for item in resolution.ignored:
        if item.flag in launch.requested:
            yield Correction(item.flag, launch.requested[item.flag], UNSEEN, f"it has no effect: {item.reason}")
        elif item.flag in launch.environment:
            yield Correction(item.flag, launch.environment[item.flag], UNSEEN, f"it has no effect: {item.reason}")


def _overridden(launch: LaunchCommand, resolution: Resolution) -> Iterator[Correction]:
    gone = {item.flag for item in resolution.ignored}
    for name, asked in launch.requested.items():
        runs = resolution.effective.get(name, asked)
        if name not in gone and not same_meaning(name, asked, runs):
            after = UNSEEN if runs is None else runs
            yield Correction(name, asked, after, f"it runs with {words.value(runs)} anyway")


def _holds(item: Correction, resolution: Resolution) -> bool:
    """Whether the changed flag stays as it was changed."""
    if item.after is UNSEEN:
        return True
    runs = resolution.effective.get(item.flag, item.after)
    return not any(ignored.flag == item.flag for ignored in resolution.ignored) and same_meaning(
        item.flag, item.after, runs
    )


def _applied(launch: LaunchCommand, corrections: list[Correction]) -> LaunchCommand:
    requested: dict[str, Value] = dict(launch.requested)
    environment: Mapping[str, str] = launch.environment
    for item in corrections:
        if item.flag in environment and item.flag not in launch.requested:
            environment = {name: value for name, value in environment.items() if name != item.flag}
        elif item.after is UNSEEN:
            requested.pop(item.flag, None)
        else:
            requested[item.flag] = item.after
    return replace(launch, requested=requested, environment=environment)
