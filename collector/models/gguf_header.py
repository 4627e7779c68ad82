"""The header of a GGUF file, under the names that a ``config.json`` would use."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

from collector.domain.drafts import ModelConfig, Tensor, Weights
from collector.domain.errors import MalformedInput, UnreadableInput

MAGIC: Final = b"GGUF"
# Field after the architecture's name, and what config.json calls it.
_FIELDS: Final = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "expert_count": "num_experts",
    "rope.freq_base": "rope_theta",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "target_hidden_size": "target_hidden_size",
    "block_size": "block_size",
}
_SCALING: Final = {
    "rope.scaling.type": "rope_type",
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
}
_TOKENIZER: Final = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.model": "tokenizer_class",
    "general.name": "_name_or_path",
}
_PLAIN: Final = {"ALL_F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_BROKEN: Final = (
    ValueError, IndexError, KeyError, OverflowError, TypeError, AttributeError, MemoryError, UnicodeError, EOFError,
    struct.error,
)  # fmt: skip
"""What the package raises on files that are cut or lie."""


def read_gguf(path: Path, source: str | None = None) -> ModelConfig:
    """A model as its GGUF header describes it, with its tensors.

    ``raw`` keeps the file's own architecture under ``general.architecture``.

    Raises:
        UnreadableInput: the package ``gguf`` is not installed, or the file cannot be opened.
        MalformedInput: the header is broken.
    """
    name = source or str(path)
    try:
        from gguf import GGUFReader, LlamaFileType
    except ImportError as error:
        raise UnreadableInput(
            "GGUF files need a further package",
            why="the package gguf is not installed",
            where=name,
            hint="pip install 'draftscope[gguf]'",
        ) from error
    try:
        reader = GGUFReader(path)
        fields = {key: _value(field) for key, field in reader.fields.items()}
        tensors = {
            item.name: Tensor(item.tensor_type.name, tuple(int(size) for size in reversed(item.shape)))
            for item in reader.tensors
        }
        vocabulary = reader.fields.get("tokenizer.ggml.tokens")
        tokens = len(vocabulary.data) if vocabulary is not None else 0
        kind = fields.get("general.file_type")
        precision = LlamaFileType(kind).name.removeprefix("MOSTLY_") if isinstance(kind, int) else ""
    except OSError as error:
        raise UnreadableInput("the file cannot be read", why=error.strerror or str(error), where=name) from error
    except _BROKEN as error:
        raise MalformedInput(
            "the header of this GGUF file is broken",
            why=f"{type(error).__name__}: {error}"[:200],
            where=name,
            hint="download or convert it again; of a split model, give the first part",
        ) from error
    return ModelConfig(name, _document(fields, tokens, precision), weights=Weights(name, tensors))


def _value(field: Any) -> Any:
    """A field's value; of an array only numbers are kept, since token lists are long."""
    if len(field.types) > 1 and (len(field.data) > 64 or field.types[-1].name == "STRING"):
        return None
    return field.contents()


def _document(fields: dict[str, Any], tokens: int, precision: str) -> dict[str, Any]:
    architecture = str(fields.get("general.architecture") or "")
    raw: dict[str, Any] = {"general.architecture": architecture, "model_type": architecture}
    for key, value in fields.items():
        short = key.removeprefix(f"{architecture}.")
        if short != key and short in _FIELDS:
            raw[_FIELDS[short]] = value
        elif key in _TOKENIZER:
            raw[_TOKENIZER[key]] = value
        elif short.endswith(("extract_layers", "target_layers")) and isinstance(value, list):
            raw["extract_layers"] = value
    scaling = {label: value for key, label in _SCALING.items() if (value := fields.get(f"{architecture}.{key}"))}
    if scaling.get("rope_type", "none") != "none":
        raw["rope_scaling"] = scaling
    if tokens:
        raw.setdefault("vocab_size", tokens)
    if precision in _PLAIN:
        raw["torch_dtype"] = _PLAIN[precision]
    elif precision:
        raw["quantization_config"] = {"quant_method": precision}
    return {key: value for key, value in raw.items() if value is not None}
