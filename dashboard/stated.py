"""What people state as text, on the command line and in forms."""

from __future__ import annotations

from collector.domain.errors import InputError


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
