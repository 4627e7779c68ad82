"""The console script: all that takes its time to load does so inside, where an interrupt ends it without a word."""

from __future__ import annotations

import sys
from typing import Final

EXIT_INTERRUPTED: Final = 130
"""What shells make of an interrupt."""


def main() -> None:
    """Run the command line."""
    try:
        from dashboard.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
