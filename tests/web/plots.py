"""Figures built with plotly's own classes, which refuse what they do not know."""

import re
from collections.abc import Mapping
from typing import Any

from plotly import graph_objects as go

_TOKEN = re.compile(r"@[a-z0-9-]+(/[0-9.]+)?")


def built(figure: Mapping[str, Any]) -> go.Figure:
    """The figure, with a colour in place of each token."""
    return go.Figure(_coloured(figure))


def _coloured(value: Any) -> Any:
    if isinstance(value, str):
        return "rgba(1,2,3,0.5)" if _TOKEN.fullmatch(value) else value
    if isinstance(value, Mapping):
        return {key: _coloured(item) for key, item in value.items()}
    return [_coloured(item) for item in value] if isinstance(value, (list, tuple)) else value
