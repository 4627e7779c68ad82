"""SGLang: the order its releases work through their flags in, its flags and their defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum, auto
from functools import cache
from pathlib import Path
from typing import Any, Final

from analysis.resolve.base import Engine, Launch
from collector.domain.arguments import Value
from collector.domain.versions import Release

_READ: Final = """
0.4.4.post4 0.4.5.post3 0.4.6.post5 0.4.7.post1 0.4.8.post1 0.4.9.post6 0.4.10.post2
0.5.1.post3 0.5.2 0.5.3.post3 0.5.4.post3 0.5.5.post3 0.5.6.post2 0.5.7 0.5.8.post1 0.5.9 0.5.10.post1 0.5.11
0.5.12.post1 0.5.13.post1 0.5.14 0.5.15 0.5.16 0.5.17 0.5.18 0.5.19 0.5.20 0.5.21 0.5.22 0.5.23
"""
READ: Final = tuple(Release.parse(text) for text in _READ.split())
"""The releases whose argument processing was read and run."""

ARGUMENTS: Final = "srt/server_args.py"
"""Where the releases up to 0.5.12 do nearly everything."""
SPECULATION: Final = "srt/server_args.py; srt/arg_groups/speculative_hook.py from 0.5.13"


class Stage(IntEnum):
    """The stations of a launch, in the order every release keeps; what moved is marked once for each place."""

    PARSE = auto()
    PARALLEL_ALIASES = auto()
    DISAGGREGATION_FIRST = auto()
    DEFAULTS = auto()
    GRAPHS = auto()
    MEMORY = auto()
    MODEL = auto()
    DETERMINISM_FIRST = auto()
    ATTENTION = auto()
    PAGES = auto()
    DATA_PARALLEL = auto()
    EXPERTS = auto()
    PIPELINE = auto()
    ALGORITHM = auto()
    ALGORITHM_LAST = auto()
    SCHEDULING_FIRST = auto()
    SCHEDULING = auto()
    DRAFT = auto()
    DRAFT_LAST = auto()
    LOADING = auto()
    DISAGGREGATION_LAST = auto()
    DETERMINISM_LAST = auto()
    LAST = auto()
    CHECK = auto()
    WORKER = auto()


@cache
def _histories() -> Mapping[str, list[list[Any]]]:
    histories: Mapping[str, list[list[Any]]] = json.loads(Path(__file__).with_name("flags.json").read_text("utf-8"))
    return histories


@cache
def _named() -> Mapping[str, Release]:
    """The releases that the histories name; each stands there many times."""
    return {text: Release.parse(text) for text in {entry[0] for told in _histories().values() for entry in told}}


@cache
def defaults(release: Release) -> Mapping[str, Value]:
    """Every flag of a release with its default.

    ``flags.json`` has for each flag a list of ``[first release, default]``; an entry without a
    default says from when on the flag is gone. A release older than all is taken for the oldest.
    """
    found: dict[str, Value] = {}
    asked = max(release, READ[0])
    begun = {text for text, first in _named().items() if first <= asked}
    for flag, history in _histories().items():
        current = [entry for entry in history if entry[0] in begun]
        if current and len(current[-1]) == 2:
            found[flag] = current[-1][1]
    return found


ENGINE: Final = Engine("sglang", "SGLang", releases=READ, defaults=defaults, check_stage=Stage.CHECK)
step = ENGINE.step

ALGORITHM: Final = "speculative_algorithm"
DRAFT_PATH: Final = "speculative_draft_model_path"
STEPS: Final = "speculative_num_steps"
TOPK: Final = "speculative_eagle_topk"
TOKENS: Final = "speculative_num_draft_tokens"
OVERLAP_OFF: Final = "disable_overlap_schedule"

EAGLE_FAMILY: Final = ("EAGLE", "EAGLE3", "STANDALONE")
"""The drafts SGLang treats alike."""


def drafts_with(launch: Launch, *algorithms: str) -> bool:
    """Whether one of these algorithms drafts."""
    return launch[ALGORITHM] in algorithms


def architecture(launch: Launch) -> str:
    """The class of the target, the outer one's where models are nested.

    Raises:
        Unsettled: the target's config is not given.
    """
    names = launch.target.architectures
    return names[0] if names else "Unknown"


def switched_on(launch: Launch, variable: str, *, default: bool) -> bool:
    """Whether an environment variable says yes, as SGLang reads yes and no."""
    text = launch.environment.get(variable)
    if text is None:
        return default
    return text.strip().lower() in {"true", "1", "yes", "y", "on"}
