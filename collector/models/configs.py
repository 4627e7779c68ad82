"""A model's ``config.json``."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from collector.domain.drafts import ModelConfig
from collector.domain.errors import MalformedInput

_KEY: Final = re.compile(r'"([^"\\]{1,80})"\s*:')
MODEL_KEYS: Final = (
    "architectures",
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "vocab_size",
    "text_config",
    "transformer_layer_config",
    "speculators_model_type",
    "speculators_config",
    "medusa_num_heads",
    "base_model_name_or_path",
)
"""A document with two of these describes a model."""


def parse_model_config(text: str, source: str = "config.json") -> ModelConfig:
    """A model's configuration from its text.

    Raises:
        MalformedInput: it is no JSON object, or no model's; the error names the line.
    """
    document = parse_json(text, source, "config.json")
    if not isinstance(document, dict):
        raise MalformedInput(
            "this config.json holds no JSON object", where=source, hint="give the config.json of the model's folder"
        )
    if not describes_model(document):
        raise MalformedInput(
            "this JSON does not describe a model",
            why=f"it has fewer than two of {', '.join(MODEL_KEYS[:6])}",
            where=source,
            hint="give the config.json of the model's folder",
        )
    return ModelConfig(source, document, _lines(text))


def parse_json(text: str, source: str, what: str) -> Any:
    """A JSON document; ``what`` names it in errors.

    Raises:
        MalformedInput: it is none, is nested too deeply, or holds a number that none can be.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedInput(
            f"this {what} is not valid JSON",
            why=error.msg,
            where=f"{source}:{error.lineno}",
            hint="copy the file again from where it was made",
        ) from error
    except RecursionError as error:
        raise MalformedInput(f"this {what} is nested too deeply", where=source) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise MalformedInput(f"this {what} holds a number that cannot be read", why=str(error), where=source) from error


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
