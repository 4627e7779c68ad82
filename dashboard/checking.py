"""What is to be said about launch commands: the same from the command line, the page and the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.check import Check, Given, check
from analysis.resolve.devices import GPUS, find_gpu
from collector.domain.arguments import LaunchCommand
from collector.domain.drafts import ModelConfig
from collector.domain.errors import InputError
from collector.domain.versions import Release, stated_release
from collector.launch import find_launches, render, settings_file
from collector.launch.dialects import dialects
from collector.models import parse_model_config

LARGEST_COMMANDS: Final = 256 << 10
"""Characters of commands or manifests that are taken over HTTP."""
LARGEST_CONFIG: Final = 1 << 20
"""Characters of a model's config that are taken over HTTP."""
MOST_COMMANDS: Final = 12
"""Launch commands that are judged in one request; each takes about a tenth of a second."""
PASTED: Final = "pasted text"
"""Source of a command that came over HTTP."""
_VERSION_OPTION: Final = "--engine-version"


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside the commands. ``engine`` is as launch commands are read under it, ``device`` a common name."""

    engine: str | None = None
    release: Release | None = None
    device: str | None = None
    draft: ModelConfig | None = None
    target: ModelConfig | None = None


def judge(launches: Sequence[LaunchCommand], beside: Beside) -> list[Check]:
    """Judge every command.

    Raises:
        InputError: one release is stated, and several engines are launched.
    """
    if beside.release is not None and len({launch.engine for launch in launches}) > 1:
        raise InputError(
            f"{_VERSION_OPTION} is given, and several engines are launched",
            hint="say with --engine which of them is meant",
        )
    return [check(launch, _given(launch, beside), render) for launch in launches]


def judge_text(text: str, beside: Beside) -> list[Check]:
    """Judge the commands of a text; no file that they name is looked at.

    Raises:
        InputError: no engine is launched there, a command is broken, or there are more than can be judged at once.
    """
    launches = list(of_engine(find_launches(text, PASTED), beside.engine))
    if len(launches) > MOST_COMMANDS:
        raise InputError(
            f"{len(launches)} launch commands are here, at most {MOST_COMMANDS} are judged at once",
            hint="draftscope check --file FILE judges any number",
        )
    return judge(launches, beside)


def of_engine(launches: Sequence[LaunchCommand], engine: str | None) -> Sequence[LaunchCommand]:
    """The commands of an engine; all without one.

    Raises:
        InputError: commands were found, and none of them launches this engine.
    """
    found = [launch for launch in launches if engine is None or launch.engine == engine]
    if launches and not found:
        raise InputError(f"no command launches {engine}", hint="leave the engine away to see what is launched")
    return found


def beside_of(
    engine: str | None,
    engine_version: str | None,
    device: str | None,
    draft_config: Mapping[str, Any] | str | None,
    target_config: Mapping[str, Any] | str | None,
) -> Beside:
    """What a form or a request states beside the commands; an empty text states nothing.

    Raises:
        InputError: one of them is not known, or a config is broken.
    """
    return Beside(
        known_engine(engine or None),
        stated_release(engine_version, _VERSION_OPTION),
        known_device(device or None),
        _config(draft_config, "draft config.json"),
        _config(target_config, "target config.json"),
    )


def known_engine(name: str | None) -> str | None:
    """The engine's name as launch commands are read under it.

    Raises:
        InputError: launch commands of this engine are not read.
    """
    if name is None:
        return None
    known = {_plain(text): dialect.engine for dialect in dialects() for text in (dialect.engine, dialect.title)}
    if _plain(name) not in known:
        titles = ", ".join(dialect.title for dialect in dialects())
        raise InputError(f"no engine named {name!r} is known", where="--engine", hint=f"known are {titles}")
    return known[_plain(name)]


def known_device(name: str | None) -> str | None:
    """The GPU's common name.

    Raises:
        InputError: it is not known what the engines ask of it.
    """
    if name is None:
        return None
    gpu = find_gpu(name)
    if gpu is None:
        raise InputError(f"no GPU named {name!r} is known", where="--device", hint=f"known are {', '.join(GPUS)}")
    return gpu.name


def _given(launch: LaunchCommand, beside: Beside) -> Given:
    """What is known beside one command; its image's tag tells the release where nobody states one."""
    missing = settings_file(launch) or ""
    release, source = beside.release, _VERSION_OPTION if beside.release is not None else ""
    if release is None and launch.release:
        release, source = Release.parse(launch.release), "the image's tag"
    return Given(release, source, beside.device, beside.draft, beside.target, missing)


def _config(given: Mapping[str, Any] | str | None, source: str) -> ModelConfig | None:
    if not given:
        return None
    return parse_model_config(given if isinstance(given, str) else json.dumps(given), source)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
