"""Draft and target models: their configs and weight headers, and what the draft's training printed."""

from __future__ import annotations

from collector.models.configs import parse_model_config
from collector.models.locations import open_model
from collector.models.training import read_training, read_validation

__all__ = ["open_model", "parse_model_config", "read_training", "read_validation"]
