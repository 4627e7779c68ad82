"""What follows from the GPU's memory: prefill chunks, captured batch sizes, the static share."""

from __future__ import annotations

from typing import Any, Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import Stage, step
from analysis.resolve.sglang.graphs import (
    BREAKABLE,
    CONFIG,
    DISABLED,
    decode_sizes,
    phase,
    prefill_sizes,
    set_phase,
)
from analysis.resolve.sglang.models import is_multimodal, uses_latent_attention
from analysis.resolve.sglang.parallel import attention_ranks, spreads_attention

_GIB: Final = 1024
_MEMORY: Final = "srt/server_args.py; srt/arg_groups/memory_hook.py from 0.5.19"
_CHUNK: Final = "chunked_prefill_size"
_STATIC: Final = "mem_fraction_static"
_LARGEST: Final = "cuda_graph_max_bs"


def _chunk_by_memory(launch: Launch) -> int:
    memory = launch.memory
    if not launch.since("0.4.7"):
        if memory < 25_000:
            return 2048
        return 16384 if launch.since("0.4.6") and launch["disaggregation_mode"] != "null" else 8192
    if memory < 35 * _GIB:
        return 4096 if launch.since("0.5.20") and memory >= 20 * _GIB else 2048
    if memory < 60 * _GIB and launch.since("0.5.3"):
        return 4096
    return 8192 if memory < 160 * _GIB else 16384


def _largest_batch_by_memory(launch: Launch) -> int | None:
    memory, wide = launch.memory, launch["tp_size"] >= 4
    if not launch.since("0.5.3"):
        small = 25_000 if not launch.since("0.4.7") else 35 * _GIB
        if memory < small:
            return 80 if wide else 8
        return None if launch.since("0.4.5") else 160
    if memory < 20 * _GIB:
        return 8
    if memory < 35 * _GIB:
        if launch.since("0.5.20"):
            return 160 if wide else 48
        return 80 if wide else (24 if launch.since("0.5.4") else 16)
    if memory < 60 * _GIB:
        return 160 if wide else 32
    if memory < 160 * _GIB:
        return 512 if wide else 256
    return 512


@step(
    "sglang-112",
    "Prefill chunk by GPU memory",
    when="chunked_prefill_size is not set",
    then="it becomes 2048 to 16384 by the memory of the GPU",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=(_CHUNK,),
)
def prefill_chunk(launch: Launch) -> None:
    """Larger GPUs take larger chunks."""
    if launch[_CHUNK] is None:
        launch[_CHUNK] = _chunk_by_memory(launch)


@step(
    "sglang-113",
    "Largest captured batch by GPU memory",
    when="cuda_graph_max_bs is not set",
    then="it becomes 8 to 512 by GPU memory and tp_size (from 0.4.5 to 0.5.2 only on small GPUs)",
    releases="-0.5.13",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=(_LARGEST,),
)
def largest_batch(launch: Launch) -> None:
    """Larger GPUs capture larger batches."""
    if launch[_LARGEST] is None:
        launch[_LARGEST] = _largest_batch_by_memory(launch)


@step(
    "sglang-75",
    "Captured batch sizes",
    when="cuda_graph_bs is not set",
    then="a list up to cuda_graph_max_bs; with a draft the small sizes are denser",
    releases="0.5.3-0.5.13",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=("cuda_graph_bs", _LARGEST),
)
def captured_batches(launch: Launch) -> None:
    """The list follows from the largest, or the largest from the list."""
    if launch["cuda_graph_bs"] is None:
        launch["cuda_graph_bs"] = decode_sizes(launch, launch[_LARGEST])
    else:
        launch[_LARGEST] = max(launch["cuda_graph_bs"])


@step(
    "sglang-114",
    "Captured prefill sizes",
    when="piecewise_cuda_graph_max_tokens or piecewise_cuda_graph_tokens is not set",
    then="up to the prefill chunk, with latent attention up to 2048 tokens (from 0.5.8)",
    releases="0.5.3-0.5.13",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=("piecewise_cuda_graph_max_tokens", "piecewise_cuda_graph_tokens"),
)
def captured_prefill(launch: Launch) -> None:
    """Prefill sizes follow the chunk."""
    largest = "piecewise_cuda_graph_max_tokens"
    if launch[largest] is None:
        launch[largest] = _prefill_limit(launch)
    if launch.since("0.5.13") and launch["context_length"] is not None:
        launch[largest] = min(launch[largest], launch["context_length"])
    if launch["piecewise_cuda_graph_tokens"] is None:
        launch["piecewise_cuda_graph_tokens"] = prefill_sizes(launch, launch[largest])


def _prefill_limit(launch: Launch) -> int:
    chunk: int = launch[_CHUNK]
    if launch.since("0.5.8") and uses_latent_attention(launch):
        chunk = min(8192, chunk) if launch.since("0.5.23") else 2048
    if launch.since("0.5.10"):
        if launch["max_total_tokens"] is not None:
            chunk = min(chunk, launch["max_total_tokens"])
        if "llama-2" in str(launch["model_path"]).lower():
            chunk = min(chunk, 4096)
    return chunk


@step(
    "sglang-115",
    "Captured sizes of both phases",
    when="cuda_graph_config leaves them open",
    then="decode up to 8 to 512 by GPU memory and tp_size, prefill up to the chunk; with a draft the small decode "
    "sizes are denser",
    releases="0.5.14-",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=(CONFIG,),
)
def captured_sizes(launch: Launch) -> None:
    """Both phases in one nested flag."""
    decode, prefill = phase(launch, "decode"), phase(launch, "prefill")
    largest = decode["max_bs"]
    if largest is None:
        largest = _largest_batch_by_memory(launch)
        running = launch["max_running_requests"]
        if launch.since("0.5.22") and running is not None:
            largest = min(largest, running)
    sizes = decode["bs"]
    if sizes is None:
        sizes = decode_sizes(launch, largest)
    else:
        largest = max(sizes)
    limit = prefill["max_bs"]
    if limit is None:
        limit = _prefill_limit(launch)
    if not launch.since("0.5.17") and launch["context_length"] is not None:
        limit = min(limit, launch["context_length"])
    tokens = prefill["bs"] if prefill["bs"] is not None else prefill_sizes(launch, limit)
    set_phase(launch, "decode", max_bs=largest, bs=sizes)
    set_phase(launch, "prefill", max_bs=limit, bs=tokens)


@step(
    "sglang-73",
    "Static memory share",
    when="mem_fraction_static is not set",
    then="what GPU memory leaves after activations, captured graphs and the draft; smaller with a draft up to 0.5.13",
    source=_MEMORY,
    stage=Stage.MEMORY,
    sets=(_STATIC,),
)
def static_share(launch: Launch) -> None:
    """The engine reserves for what is not weights or cache, and gives those the rest."""
    if launch[_STATIC] is not None:
        return
    memory = launch.memory
    if not launch.since("0.4.7"):
        launch[_STATIC] = _share_by_ranks(launch, memory)
        return
    reserved = _reserved(launch, memory) if launch.since("0.5.3") else _reserved_by_class(launch, memory)
    launch[_STATIC] = round((memory - reserved) / memory, 3)
    _leave_room_for_images(launch)


def _share_by_ranks(launch: Launch, memory: int) -> float:
    ranks = launch["tp_size"] * (launch["pp_size"] if launch.since("0.4.6") else 1)
    steps = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87))
    share = next((value for least, value in steps if ranks >= least), 0.88)
    if not launch.since("0.4.5"):
        return share
    if not launch.since("0.4.6"):
        return share if memory <= 81920 else (memory - 13 * _GIB) / memory
    if memory > 81920:
        share = 0.88
    if memory > 96 * _GIB:
        share = min(share + 48 * _GIB * (1 - share) / memory, (memory - 18 * _GIB) / memory)
    return share


def _reserved_by_class(launch: Launch, memory: int) -> float:
    ranks: int = launch["tp_size"] * launch["pp_size"]
    if memory < 35 * _GIB:
        reserved = (2.8 + ranks / 10) * _GIB
    elif memory < 90 * _GIB:
        reserved = (9.5 + ranks / 2) * _GIB
    elif memory < 160 * _GIB:
        reserved = (12 + ranks / 2) * _GIB
    else:
        reserved = 32.0 * _GIB
    if launch["speculative_algorithm"] is not None:
        large_draft = launch.since("0.5.2") and launch["speculative_algorithm"] == "STANDALONE"
        reserved += (6 if large_draft else 2) * _GIB
    if launch["enable_dp_attention"]:
        reserved += 4 * _GIB
    return reserved


def _reserved(launch: Launch, memory: int) -> float:
    decode = _DecodeGraphs(launch)
    reserved = 512.0 + _activation_tokens(launch, decode) * 1.5
    reserved += float(launch["tp_size"] * launch["pp_size"] / 8 * _GIB)
    if decode.captured:
        reserved += decode.largest * 2
    if decode.served and spreads_attention(launch):
        reserved += decode.largest * attention_ranks(launch) * 3
        if decode.largest > 300:
            reserved += decode.largest * attention_ranks(launch) * 1.5
    reserved += _for_prefill_graphs(launch)
    if memory > 60 * _GIB:
        reserved = max(reserved, 10 * _GIB)
    reserved += _for_draft(launch)
    if launch.since("0.5.15") and decode.captured and launch["moe_a2a_backend"] == "deepep":
        reserved += 2 * _GIB
    return reserved


class _DecodeGraphs:
    """Decode as far as the reserve asks: whether this server decodes, captures, and up to which batch."""

    def __init__(self, launch: Launch) -> None:
        if launch.since("0.5.14"):
            settings = phase(launch, "decode")
            self.largest: int = settings["max_bs"]
            self.served = not launch.since("0.5.15") or launch["disaggregation_mode"] != "prefill"
            self.captured = self.served and (not launch.since("0.5.15") or settings["backend"] != DISABLED)
        else:
            self.largest = launch[_LARGEST]
            self.served = self.captured = True


def _activation_tokens(launch: Launch, decode: _DecodeGraphs) -> int:
    if launch.since("0.5.15") and launch["disaggregation_mode"] == "decode":
        running: int = launch["max_running_requests"] or decode.largest or 1
        return max(running * (launch["speculative_num_draft_tokens"] or 1), 2048)
    chunk: int = launch[_CHUNK] if launch[_CHUNK] > 0 else launch["max_prefill_tokens"]
    return max(chunk, 2048)


def _for_prefill_graphs(launch: Launch) -> float:
    if launch.since("0.5.14"):
        settings = phase(launch, "prefill")
        decodes_only = launch.since("0.5.15") and launch["disaggregation_mode"] == "decode"
        if decodes_only or settings["backend"] == DISABLED:
            return 0.0
        bridge = launch.since("0.5.17") and settings["backend"] == BREAKABLE and launch["moe_a2a_backend"] == "deepep"
        return (1.5 * _GIB if uses_latent_attention(launch) else len(settings["bs"]) * 8) + (_GIB if bridge else 0)
    if launch.since("0.5.10"):
        if launch["disable_piecewise_cuda_graph"]:
            return 0
        return 1.5 * _GIB if uses_latent_attention(launch) else len(launch["piecewise_cuda_graph_tokens"]) * 8
    if not launch["enable_piecewise_cuda_graph"]:
        return 0
    if launch.since("0.5.8"):
        return len(launch["piecewise_cuda_graph_tokens"]) * 8
    tokens: int = launch["piecewise_cuda_graph_max_tokens"]
    if launch.since("0.5.7"):
        return tokens // 8
    return tokens // 4 if launch.since("0.5.5") else 0


def _for_draft(launch: Launch) -> int:
    if launch.since("0.5.14") or launch["speculative_algorithm"] in (None, "NGRAM"):
        return 0
    if launch["speculative_algorithm"] == "STANDALONE":
        return 6 * _GIB
    return (4 if launch.since("0.5.10") else 2) * _GIB


def _leave_room_for_images(launch: Launch) -> None:
    """An image encoder takes a share by its size.

    share x 0.95 x (1 - 0.1 (layers x width² / (24 x 1024²) - 1)), the bracket between 0.8 and 1.05.
    """
    if not is_multimodal(launch) or (launch.since("0.5.17") and launch["disaggregation_mode"] == "decode"):
        return
    if launch["language_only"] or launch["language_model_only"]:
        return
    vision: dict[str, Any] | None = launch.target.raw.get("vision_config")
    if not vision:
        return
    size = vision.get("num_hidden_layers", 24) * vision.get("hidden_size", 1024) ** 2
    factor = 1 - 0.1 * (size / (24 * 1024**2) - 1)
    launch[_STATIC] = launch[_STATIC] * (0.95 * max(0.8, min(1.05, factor)))
