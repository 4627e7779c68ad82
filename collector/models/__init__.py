"""Draft and target models: their ``config.json`` and what the draft's training printed."""

from __future__ import annotations

from collector.models.configs import parse_model_config
from collector.models.training import read_validation

__all__ = ["parse_model_config", "read_validation"]
