"""A model's ``config.json``."""

from __future__ import annotations

import json
import re
from typing import Final

from collector.domain.drafts import ModelConfig
from collector.domain.errors import MalformedInput

_KEY: Final = re.compile(r'"([^"\\]{1,80})"\s*:')
MODEL_KEYS: Final = ("architectures", "model_type", "hidden_size", "num_hidden_layers", "vocab_size", "text_config")
"""A document with two of these describes a model."""


def parse_model_config(text: str, source: str = "config.json") -> ModelConfig:
    """A model's configuration from its text.

    Raises:
        MalformedInput: it is no JSON object, or no model's; the error names the line.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedInput(
            "this config.json is not valid JSON",
            why=error.msg,
            where=f"{source}:{error.lineno}",
            hint="copy the file again from the model's folder",
        ) from error
    except RecursionError as error:
        raise MalformedInput("this config.json is nested too deeply to be a model's", where=source) from error
    if not isinstance(document, dict):
        raise MalformedInput(
            "this config.json holds no JSON object", where=source, hint="give the config.json of the model's folder"
        )
    if not describes_model(document):
        raise MalformedInput(
            "this JSON does not describe a model",
            why=f"it has none of {', '.join(MODEL_KEYS)}",
            where=source,
            hint="give the config.json of the model's folder",
        )
    return ModelConfig(source, document, _lines(text))


def _lines(text: str) -> dict[str, int]:
    """The line on which each key stands first."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for key in _KEY.findall(line):
            lines.setdefault(key, number)
    return lines


def describes_model(document: object) -> bool:
    """Whether a JSON document is a model's configuration."""
    return isinstance(document, dict) and sum(key in document for key in MODEL_KEYS) >= 2
