"""How often a service looks for garbage.

Objects by the thousand come and go with every scrape and page, nearly all without cycles: they are gone when nobody refers
to them any more. What is looked through again and again is what stays, and that takes longer than most pages and an
eighth of collecting.
"""

from __future__ import annotations

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""Containers that are new before garbage is looked for among them; Python's own figure is 700."""


def settle() -> None:
    """What exists by now stays as long as the program runs: it is not looked through again, and the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
