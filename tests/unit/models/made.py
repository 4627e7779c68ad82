"""Model files made for tests: configs of public layouts, weights without weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def safetensors(path: Path, shapes: Mapping[str, Sequence[int]], *, size: int | None = None) -> Path:
    """A safetensors file with a real header; its data is a hole in the file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes.items():
        length = 2
        for side in shape:
            length *= side
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(size if size is not None else 8 + len(text) + at)
    return path


LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "vocab_size": 128256, "max_position_embeddings": 131072, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
}  # fmt: skip

HEAD = {
    "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_hidden_layers": 1, "vocab_size": 128256, "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5,
}  # fmt: skip

IDS = "eagle_aux_hidden_state_layer_ids"

# Layouts of public drafts: config, the kind and the tool it is told to be, the method that serves it, and an unknown key.
LAYOUTS: dict[str, tuple[dict[str, Any], str, str, dict[str, Any]]] = {
    "eagle1": (
        {**HEAD, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "bias": True, "vocab_size": 32000},
        "EAGLE", "EAGLE", {"speculative_algorithm": "EAGLE"},
    ),
    "eagle2-for-vllm": (
        {**HEAD, "architectures": ["EagleLlamaForCausalLM"], "model_type": "eagle"},
        "EAGLE", "EAGLE", {"speculative_algorithm": "EAGLE"},
    ),
    "eagle3-official": (
        {**HEAD, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "draft_vocab_size": 32000},
        "EAGLE-3", "EAGLE", {"speculative_algorithm": "EAGLE3"},
    ),
    "eagle3-specforge": (
        {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "draft_vocab_size": 32000,
         "eagle_config": {IDS: [1, 15, 28]}},
        "EAGLE-3", "SpecForge", {"speculative_algorithm": "EAGLE3"},
    ),
    "eagle3-model-optimizer": (
        {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "draft_vocab_size": 32000, "eagle_config": {
            IDS: [1, 15, 28], "use_aux_hidden_state": True, "use_input_layernorm_in_first_layer": True,
            "use_last_layernorm": True, "use_mtp_layernorm": False, "next_layer_regular": True, "parallel_draft_step": 1,
            "parallel_draft_heads_num_layers": None}},
        "EAGLE-3", "Model Optimizer", {"speculative_algorithm": "EAGLE3"},
    ),
    "eagle3-speculators": (
        {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_version": "0.7.0",
         "auto_map": {"": "eagle3.Eagle3SpeculatorConfig"}, "has_no_defaults_at_init": False, "draft_vocab_size": 32000,
         IDS: [2, 16, 29], "norm_before_residual": True, "target_hidden_size": None, "torch_dtype": "bfloat16",
         "speculators_config": {"algorithm": "eagle3", "default_proposal_method": "greedy",
                                "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
                                "verifier": {"name_or_path": "meta-llama/Llama-3.1-8B-Instruct", "architectures": ["LlamaForCausalLM"]}},
         "transformer_layer_config": {**HEAD, "model_type": "llama"}},
        "EAGLE-3", "speculators", {"speculative_algorithm": "EAGLE3"},
    ),
    "peagle-specforge": (
        {**HEAD, "architectures": ["PEagleDraftModel"], "model_type": "llama", "num_hidden_layers": 4, "draft_vocab_size": 32000},
        "P-EAGLE", "SpecForge", {"speculative_algorithm": "EAGLE3"},
    ),
    "dflash-specforge": (
        {**HEAD, "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "num_hidden_layers": 5, "block_size": 16,
         "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "num_target_layers": 32, "layer_types": ["full_attention"] * 5,
         "dflash_config": {"mask_token_id": 128002, "target_layer_ids": [1, 8, 15, 22, 29]}},
        "DFlash", "SpecForge", {"speculative_algorithm": "DFLASH"},
    ),
    "dspark-specforge": (
        {**HEAD, "architectures": ["DSparkDraftModel"], "model_type": "qwen3", "num_hidden_layers": 5, "block_size": 7,
         "dflash_config": {"markov_rank": 256, "projector_type": "dspark", "mask_token_id": 5, "target_layer_ids": [1, 9, 17]}},
        "DSpark", "SpecForge", {"speculative_algorithm": "DSPARK"},
    ),
    "medusa": (
        {"medusa_num_heads": 4, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "version": "2"},
        "Medusa", "Medusa", {"speculative_algorithm": "MEDUSA"},
    ),
    "nextn": (
        {**HEAD, "architectures": ["DeepseekV3ForCausalLMNextN"], "model_type": "deepseek_v3", "num_nextn_predict_layers": 1,
         "n_routed_experts": 256, "kv_lora_rank": 512, "quantization_config": {"quant_method": "fp8"}},
        "MTP", "plain", {"speculative_algorithm": "NEXTN"},
    ),
    "standalone": (
        {**HEAD, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048,
         "bos_token_id": 128000, "eos_token_id": [128001, 128009]},
        "draft model", "plain", {"speculative_algorithm": "STANDALONE"},
    ),
}  # fmt: skip
