"""What the commands that read files share: the options that give files a role and state what files do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from collector.domain.errors import InputError

if TYPE_CHECKING:
    from collector.bundle import BundleOptions
    from collector.domain.versions import Release

Paths: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(help="Log files, or a folder with logs and configs (a bundle); - is standard input."),
]
Launch: TypeAlias = Annotated[Path | None, typer.Option(help="How the server was started.")]
Baseline: TypeAlias = Annotated[Path | None, typer.Option(help="Log of a run without speculation.")]
Previous: TypeAlias = Annotated[Path | None, typer.Option(help="Log of an earlier run.")]
DraftConfig: TypeAlias = Annotated[Path | None, typer.Option(help="The draft's config.json.")]
TargetConfig: TypeAlias = Annotated[Path | None, typer.Option(help="The target's config.json.")]
Training: TypeAlias = Annotated[Path | None, typer.Option(help="What the draft's validation printed.")]
Metrics: TypeAlias = Annotated[
    Path | None, typer.Option(help="A scrape of /metrics, kept in a file; everything since the start.")
]
MetricsBefore: TypeAlias = Annotated[
    Path | None, typer.Option(help="An earlier scrape of the same process: what lies between both is judged.")
]
ValidationAccuracy: TypeAlias = Annotated[
    str | None, typer.Option(help="Validation accuracy, or one a position: 0.747 or 0.80,0.71.", metavar="X[,X...]")
]
Engine: TypeAlias = Annotated[str | None, typer.Option(help="Engine, where the content does not tell.")]
EngineVersion: TypeAlias = Annotated[str | None, typer.Option(help="Release of the engine, for instance 0.5.10.")]
Temperature: TypeAlias = Annotated[float | None, typer.Option(help="Sampling temperature of the traffic.", min=0.0)]


def bundle_options(
    *,
    launch: Path | None,
    baseline: Path | None,
    previous: Path | None,
    draft_config: Path | None,
    target_config: Path | None,
    training: Path | None,
    metrics: Path | None,
    metrics_before: Path | None,
    validation_accuracy: str | None,
    engine: str | None,
    engine_version: str | None,
    temperature: float | None,
) -> BundleOptions:
    """The options as the reader of bundles takes them.

    Raises:
        InputError: a release or an accuracy cannot be read.
    """
    from collector.bundle import BundleOptions

    return BundleOptions(
        launch=launch,
        baseline=baseline,
        previous=previous,
        draft_config=draft_config,
        target_config=target_config,
        training=training,
        metrics=metrics,
        metrics_before=metrics_before,
        validation_accuracy=accuracies(validation_accuracy),
        engine=engine,
        engine_version=release_of(engine_version),
        temperature=temperature,
    )


def release_of(text: str | None, option: str = "--engine-version") -> Release | None:
    """The release that an option states.

    Raises:
        InputError: it is no release.
    """
    from collector.domain.versions import stated_release

    return stated_release(text, option)


def accuracies(text: str | None) -> tuple[float, ...]:
    """``0.747`` or ``0.8,0.7,0.6``.

    Raises:
        InputError: a part is no number between 0 and 1.
    """
    figures = []
    for part in (text or "").replace(";", ",").split(","):
        if not part.strip():
            continue
        try:
            figure = float(part)
        except ValueError:
            raise InputError(
                f"--validation-accuracy {text!r} is not a number", hint="for instance 0.747 or 0.80,0.71,0.66"
            ) from None
        if not 0 <= figure <= 1:
            raise InputError(
                f"--validation-accuracy {part.strip()} lies outside 0 to 1",
                hint=f"write percent as a share: {figure / 100:g}" if 1 < figure <= 100 else "an accuracy is a share",
            )
        figures.append(figure)
    return tuple(figures)
