"""draftscope's analysis: theory, predictions, rules and the diagnosis they add up to.

From Python::

    from pathlib import Path
    from analysis import diagnose
    from collector.bundle import read_bundle

    diagnosis = diagnose(read_bundle([Path("bundle")]))
    diagnosis.verdicts, diagnosis.findings          # typed
    diagnosis.subject.frame                         # a pandas frame of the windows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.runner import diagnose

__all__ = ["diagnose"]


def __getattr__(name: str) -> Any:
    """Load the runner on first use: the theory alone needs no pandas."""
    if name == "diagnose":
        from analysis.runner import diagnose

        return diagnose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
