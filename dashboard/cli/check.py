"""``draftscope check``: before a launch, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.errors import InputError, NoLaunchCommand
from dashboard.cli.bundles import DraftConfig, EngineVersion, TargetConfig, release_of
from dashboard.cli.console import EXIT_FAILED, EXIT_FINE, print_error
from dashboard.cli.reporting import FailOn, FailOnOption, FormatName, Output, console_for, exit_code, write_report
from dashboard.formats import find_format

if TYPE_CHECKING:
    from collector.domain.arguments import LaunchCommand
    from collector.domain.drafts import ModelConfig

COMMAND_LINE = "command line"
"""Source of a command that was given as arguments."""
SETTINGS = (".yaml", ".yml")
"""Endings of files that may hold options alone."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    # What follows the first word of COMMAND belongs to it, with or without "--".
    app.command(context_settings={"allow_interspersed_args": False})(check)


def check(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The launch command, after --; it may begin with assignments or env. With --file: more files. "
            "- reads the standard input.",
            metavar="-- COMMAND...",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File with launch commands: shell text, docker run, compose, Kubernetes manifests, a systemd unit, "
            "lines of ps, /server_info; - is standard input."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Engine: looks at its commands only; reads options alone, and its settings files."),
    ] = None,
    engine_version: EngineVersion = None,
    device: Annotated[str | None, typer.Option(help="GPU that will serve, for instance h100.")] = None,
    draft_config: DraftConfig = None,
    target_config: TargetConfig = None,
    form: FormatName = "text",
    write_to: Output = None,
    fail_on: FailOnOption = FailOn.WARNING,
    allow_none: Annotated[
        bool, typer.Option("--allow-none", help="Exit 0 where the files hold no launch command, as hooks need it.")
    ] = False,
) -> None:
    """Say what an engine will make of a launch command: what it changes, ignores or refuses."""
    from dashboard.checking import Beside, judge, known_device, known_engine

    report = find_format(form)
    words = command or []
    files = [Path("-")] if words == ["-"] and file is None else []
    if file is not None:
        files = [file, *map(Path, words)]
    known = known_engine(engine)
    problems: list[InputError] = []
    launches = _from_files(files, known, problems) if files else _from_words(words, known)
    for problem in problems:
        print_error(problem)
    if known is not None:
        launches = [launch for launch in launches if launch.engine == known]
    if not launches:
        if allow_none and not problems:
            raise typer.Exit(EXIT_FINE)
        if problems:
            raise typer.Exit(EXIT_FAILED)
        raise _nothing(files, engine)
    draft, target = _model(draft_config), _model(target_config)
    checks = judge(launches, Beside(known, release_of(engine_version), known_device(device), draft, target))
    write_report(report.check(checks, console_for(write_to)), write_to)
    if problems or not any(item.predicted for item in checks):
        raise typer.Exit(EXIT_FAILED)
    worst = max((item.worst for item in checks if item.worst is not None), default=None)
    raise typer.Exit(exit_code(worst, fail_on))


def _from_files(files: Sequence[Path], engine: str | None, problems: list[InputError]) -> list[LaunchCommand]:
    """The commands of all files; what cannot be read is added to ``problems`` and hides nothing else."""
    from collector.sources.launches import read_launches, read_settings

    found: list[LaunchCommand] = []
    for path in files:
        try:
            found += read_launches(path)
        except NoLaunchCommand:
            if engine is not None and path.suffix in SETTINGS:
                found.append(read_settings(path, engine))
        except InputError as error:
            problems.append(error)
    return found


def _nothing(files: Sequence[Path], engine: str | None) -> InputError:
    if engine is not None:
        return InputError(f"no command launches {engine}", hint="leave --engine away to see what is launched")
    return NoLaunchCommand(
        "no launch command of a known engine is here",
        where=", ".join(map(str, files)),
        hint="with --allow-none that is no error; a file of options alone needs --engine",
    )


def _from_words(words: Sequence[str], engine: str | None) -> list[LaunchCommand]:
    from collector.launch import find_launches, launches_of_words
    from collector.sources.launches import with_its_settings

    if not words:
        raise InputError(
            "no launch command is given",
            hint="draftscope check -- python -m sglang.launch_server ..., or --file manifest.yaml",
        )
    whole = len(words) == 1
    found = find_launches(words[0], COMMAND_LINE) if whole else launches_of_words(words, COMMAND_LINE, engine)
    return [with_its_settings(launch, None) for launch in found]


def _model(path: Path | None) -> ModelConfig | None:
    if path is None:
        return None
    from collector.models import open_model

    return open_model(path)
