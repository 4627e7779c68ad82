"""What the commands that read files share: the options that give files a role and state what files do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dashboard.stated import accuracies

if TYPE_CHECKING:
    from collector.bundle import BundleOptions
    from collector.domain.versions import Release

Paths: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Log files, or a folder with logs and configs (a bundle), also ssh://, s3://, gs:// and https://; - is standard input."
    ),
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
Responses: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(help="Responses of the engine as JSON lines, with their counts; may be repeated.", metavar="FILE"),
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
    responses: list[Path] | None,
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
        responses=tuple(responses or ()),
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


@contextmanager
def brought(paths: list[Path], options: BundleOptions) -> Iterator[tuple[list[Path], BundleOptions]]:
    """The files that were named on the command line, those of other machines as copies that last as long as this.

    Raises:
        InputError: what reads an address is not installed, or there is nothing to read.
        SourceError: another machine does not answer as it should.
    """
    from collector.sources.remote import address_of, bring

    copies: dict[Path, str] = {}
    with TemporaryDirectory(prefix="draftscope-") as folder:

        def local(path: Path) -> Path:
            address = address_of(path)
            if address is None:
                return path
            place = Path(folder) / str(len(copies))
            place.mkdir()
            found = bring(address, place)
            copies.update(found)
            return next(iter(found)) if len(found) == 1 else place

        here = [local(path) for path in paths]
        given = {field.name: getattr(options, field.name) for field in fields(options)}
        changed: dict[str, Any] = {name: local(value) for name, value in given.items() if isinstance(value, Path)}
        changed["responses"] = tuple(map(local, options.responses))
        yield here, replace(options, copies=copies, **changed)
