"""What all commands share: consoles, exit codes, the form of an error."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from collector.domain.errors import DraftscopeError

EXIT_FINE: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_FAILED: Final = 2


def errors() -> Console:
    """The console for errors and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def output() -> Console:
    """The console for results; 80 columns where the width is not known."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=80)


def print_error(error: DraftscopeError) -> None:
    """What, why, where and what to try, a line each."""
    console = errors()
    for name, text in error.parts().items():
        label = "error" if name == "what" else name
        console.print(f"{label}: ", style="bold red" if name == "what" else "bold", end="")
        console.print(text, markup=False)
