"""The command line: one module a group of commands, found here.

Heavy imports (pandas, SQLAlchemy, FastAPI) happen inside the commands, so that ``--help`` and
errors answer at once.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from functools import cache

import typer

from collector.domain.errors import DraftscopeError
from dashboard.cli.console import EXIT_FAILED, print_error

app = typer.Typer(
    name="draftscope",
    help="Finds out whether speculative decoding works, why it does not, and what to do.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"draftscope {version('draftscope')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: bool = typer.Option(
        False, "--version", callback=lambda wanted: _version(wanted=wanted), is_eager=True, help="Print the version."
    ),
) -> None:
    """Finds out whether speculative decoding works, why it does not, and what to do."""


@cache
def _register() -> None:
    """Every module here that defines ``register(app)`` adds its commands."""
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        if hasattr(module, "register"):
            module.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script: errors become four plain lines and exit code 2."""
    _register()
    try:
        app(args=list(arguments) if arguments is not None else None)
    except DraftscopeError as error:
        print_error(error)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        # The reader of our output went away (head, a closed pager): not an error of ours.
        sys.stderr.close()
        sys.exit(0)
