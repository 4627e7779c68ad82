"""CUDA graphs: which kind, which sizes, and how drafts fit into them."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.vllm.engine import (
    BATCHED,
    BY_BATCH,
    GRAPH_MODE,
    GRAPH_SIZE,
    RUNNER,
    SEQUENCES,
    TOKENS,
    WHOLE,
    Stage,
    on_cpu,
    speculates,
    step,
)

_COMPILATION: Final = "vllm/config/compilation.py"
_SIZES: Final = "compilation_config.cudagraph_capture_sizes"
_COLD_START: Final = "compilation_config.fast_moe_cold_start"
_FULL: Final = ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_BLACKWELL: Final = 10


@step(
    "vllm-61",
    "Eager mode captures nothing",
    when="enforce_eager",
    then="no CUDA graphs and no compilation, for target and draft",
    says="Cudagraph is disabled under eager mode",
    releases="0.10.1-0.11.2",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE, GRAPH_SIZE, _SIZES),
)
@step(
    "vllm-61",
    "Eager mode captures nothing",
    when="enforce_eager",
    then="no CUDA graphs and no compilation, for target and draft",
    says="Enforce eager set, overriding optimization level to -O0",
    releases="0.12-0.16.0",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE, GRAPH_SIZE, _SIZES),
)
@step(
    "vllm-61",
    "Eager mode captures nothing",
    when="enforce_eager",
    then="no CUDA graphs and no compilation, for target and draft",
    says="Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting -cc.mode=none "
    "-cc.cudagraph_mode=none",
    releases="0.17-0.30.0",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE, GRAPH_SIZE, _SIZES),
)
@step(
    "vllm-61",
    "Eager mode captures nothing",
    when="enforce_eager",
    then="no CUDA graphs and no compilation, for target and draft",
    says="Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is equivalent to setting "
    "-cc.mode=none -cc.cudagraph_mode=none and --kernel_config.enable_jit_warmup=False",
    releases="0.31.0-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE, GRAPH_SIZE, _SIZES),
)
def eager(launch: Launch) -> None:
    """Every kernel is launched by itself."""
    if launch["enforce_eager"]:
        if launch.since("0.12") or not on_cpu(launch):
            launch.announce()
        _capture_nothing(launch)


@step(
    "vllm-111",
    "No graphs on a CPU",
    when="no GPU",
    then="no CUDA graphs",
    releases="0.10.1-",
    source="vllm/platforms/cpu.py",
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE, GRAPH_SIZE, _SIZES),
)
def no_graphs_on_cpu(launch: Launch) -> None:
    """There is nothing to capture."""
    if on_cpu(launch):
        _capture_nothing(launch)


def _capture_nothing(launch: Launch) -> None:
    launch[GRAPH_MODE] = "NONE"
    if launch.has(GRAPH_SIZE):
        launch[GRAPH_SIZE] = 0
        launch[_SIZES] = []


@step(
    "vllm-103",
    "Graphs by default",
    when="compilation_config has no cudagraph_mode, and the engine compiles",
    then="FULL_AND_PIECEWISE (PIECEWISE before 0.11)",
    releases="0.10.1-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE,),
)
def graphs_by_default(launch: Launch) -> None:
    """Decode batches are captured whole, others in pieces."""
    if launch[GRAPH_MODE] is not None:
        launch[GRAPH_MODE] = str(launch[GRAPH_MODE]).upper()
        return
    for flag in ("compilation_config", "compilation_config.mode", "compilation_config.level", "optimization_level"):
        if launch.given(flag):
            raise Unsettled(f"what {flag} makes of compilation")
    launch[GRAPH_MODE] = "FULL_AND_PIECEWISE" if launch.since("0.11.0") else "PIECEWISE"


@step(
    "vllm-63",
    "One number of tokens with data parallelism",
    when="num_speculative_tokens_per_batch_size with data_parallel_size above 1",
    then="the schedule is dropped",
    says="Dynamic speculative decoding is not supported with data parallelism because data-parallel ranks can select "
    "different speculative-token counts, causing DP divergence and deadlocks. Disabling "
    "num_speculative_tokens_per_batch_size and falling back to static num_speculative_tokens={}.",
    releases="0.26.0-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(BY_BATCH,),
)
def one_number(launch: Launch) -> None:
    """Ranks would draft different numbers and wait for each other forever."""
    if speculates(launch) and launch[BY_BATCH] is not None and launch["data_parallel_size"] > 1:
        launch.announce(launch[TOKENS])
        launch[BY_BATCH] = None


@step(
    "vllm-62",
    "Pieces with a schedule of tokens",
    when="num_speculative_tokens_per_batch_size with full CUDA graphs",
    then="cudagraph_mode becomes PIECEWISE",
    says="Dynamic speculative decoding changes the target verification length at runtime. Overriding cudagraph_mode "
    "from {} to PIECEWISE for reliability.",
    releases="0.24-0.24.0",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE,),
)
@step(
    "vllm-62",
    "Pieces with a schedule of tokens",
    when="num_speculative_tokens_per_batch_size with full CUDA graphs on the first model runner",
    then="cudagraph_mode becomes PIECEWISE",
    says="Dynamic speculative decoding changes the target verification length at runtime. Overriding cudagraph_mode "
    "from {} to PIECEWISE for reliability. Use VLLM_USE_V2_MODEL_RUNNER=1 if you want to use full CUDA graphs.",
    releases="0.25-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE,),
)
def pieces_with_schedule(launch: Launch) -> None:
    """A captured batch verifies one number of tokens."""
    if not speculates(launch) or launch[BY_BATCH] is None or launch[GRAPH_MODE] not in _FULL:
        return
    if not launch.since("0.25") or not launch[RUNNER]:
        launch.announce(launch[GRAPH_MODE])
        launch[GRAPH_MODE] = "PIECEWISE"


@step(
    "vllm-71",
    "Pieces with a layer-wise cache connector",
    when="kv_transfer_config names LMCache's connector with use_layerwise, with full CUDA graphs",
    then="cudagraph_mode becomes PIECEWISE",
    says="KV connector {} requires PIECEWISE CUDA graph mode due to layerwise async operations that cannot be captured "
    "in CUDA graphs. Overriding cudagraph_mode from {} to PIECEWISE.",
    releases="0.17-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(GRAPH_MODE,),
)
def pieces_with_connector(launch: Launch) -> None:
    """It moves the cache of a layer while the next one runs."""
    if not launch.given("kv_transfer_config") or launch[GRAPH_MODE] not in _FULL:
        return
    config = launch["kv_transfer_config"]
    if not isinstance(config, dict):
        raise Unsettled("the KV connector, which cannot be read here")
    name, extra = config.get("kv_connector"), config.get("kv_connector_extra_config") or {}
    if name == "LMCacheConnectorV1" and extra.get("use_layerwise"):
        launch.announce(name, launch[GRAPH_MODE])
        launch[GRAPH_MODE] = "PIECEWISE"
    elif name == "MultiConnector":
        raise Unsettled("the connectors inside the MultiConnector")


@step(
    "vllm-70",
    "No fast cold start with drafts",
    when="fast_moe_cold_start is not given",
    then="off with speculation; else by the version of PyTorch (from 0.20)",
    releases="0.15-",
    source=WHOLE,
    stage=Stage.GRAPHS,
    sets=(_COLD_START,),
)
def cold_start(launch: Launch) -> None:
    """It is unsafe where the draft has experts."""
    if launch[_COLD_START] is not None:
        return
    if not speculates(launch):
        raise Unsettled("the version of PyTorch")
    launch[_COLD_START] = False


@step(
    "vllm-60",
    "Largest captured batch",
    when="compilation_config has no max_cudagraph_capture_size (0 where CUDA graphs are off)",
    then="twice max_num_seqs tokens (from 0.13 times num_speculative_tokens + 1), at most 512 (1024 on data-centre "
    "Blackwell from 0.28) and at most max_num_batched_tokens, rounded down to a captured size; more running requests "
    "than that over num_speculative_tokens + 1 decode without a full graph",
    releases="0.11.1-",
    source=WHOLE,
    stage=Stage.CACHE,
    sets=(GRAPH_SIZE,),
)
def largest_batch(launch: Launch) -> None:
    """Each running request brings its drafts into the batch."""
    if on_cpu(launch) or launch["enforce_eager"]:
        return
    if _mode(launch) == "NONE":
        launch[GRAPH_SIZE] = 0
        return
    asked = launch[GRAPH_SIZE]
    if launch[_SIZES] is not None:
        inside = [size for size in launch[_SIZES] if size <= launch[BATCHED]]
        if asked is not None and asked != max(inside, default=0):
            launch.reject(
                f"customized max_cudagraph_capture_size(={asked}) should be consistent with the max value of "
                f"cudagraph_capture_sizes(={max(inside, default=0)})"
            )
        launch[GRAPH_SIZE] = max(inside, default=0)
    else:
        launch[GRAPH_SIZE] = _largest(launch, asked)
    if speculates(launch):
        width = launch[TOKENS] + 1
        launch.remark(
            GRAPH_SIZE,
            f"a running request brings {width} tokens: more than {launch[GRAPH_SIZE] // width} of them decode without "
            "a full graph",
        )


def _mode(launch: Launch) -> str | None:
    try:
        mode: str | None = launch[GRAPH_MODE]
    except Unsettled:
        return None  # some graphs are captured, whole or in pieces
    return mode


def _largest(launch: Launch, asked: int | None) -> int:
    """The largest of the default sizes: 1, 2, 4, eights below 256, sixteens from there."""
    batched: int = launch[BATCHED]
    sequences: int = launch[SEQUENCES]
    width: int = launch[TOKENS] + 1 if speculates(launch) and launch.since("0.13") else 1
    own_sizes: list[int] = []
    largest = asked
    if largest is None:
        ceiling = 1024 if launch.since("0.28") and launch.gpu.capability[0] == _BLACKWELL else 512
        largest = min(sequences * width * 2, ceiling)
        if launch.since("0.29"):
            if speculates(launch) and launch[BY_BATCH] is not None:
                raise Unsettled("the sizes for each number of tokens in the schedule")
            own_sizes = _decode_sizes(sequences, width, largest, ceiling)
    largest = min(largest, batched)
    sizes: list[int] = [1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)]
    inside = [size for size in sizes if size <= largest]
    if launch.since("0.20") and batched <= largest:
        inside.append(batched)
    return max(inside + [size for size in own_sizes if size <= batched])


def _decode_sizes(sequences: int, width: int, largest: int, ceiling: int) -> list[int]:
    """Batches of decoding requests alone, from 0.29."""
    if width == 1:
        return [sequences] if sequences <= largest else []
    most = min(sequences, ceiling)
    counts = (*(n for n in (1, 2, 4) if n <= most), *range(8, min(most + 1, 256), 8), *range(256, most + 1, 16), most)
    return [count * width for count in counts if count * width <= largest]


@step(
    "vllm-58",
    "Whole graphs by the attention backend",
    when="full CUDA graphs with speculation",
    then="PIECEWISE or NONE where the attention backend cannot capture num_speculative_tokens + 1 tokens of each request",
    says="CUDAGraphMode.{} is not supported with spec-decode for attention backend {} (support: {}); setting "
    "cudagraph_mode=PIECEWISE",
    releases="0.10.1-",
    source=_COMPILATION,
    stage=Stage.LOAD,
    sets=(GRAPH_MODE,),
)
def graphs_by_backend(launch: Launch) -> None:
    """The backend is chosen when the model is loaded."""
    if speculates(launch) and launch[GRAPH_MODE] in _FULL:
        raise Unsettled(
            f"whether the attention backend captures decode batches of {launch[TOKENS] + 1} tokens a request whole "
            f"({launch[GRAPH_MODE]}; PIECEWISE or NONE where it does not)"
        )


@step(
    "vllm-59",
    "Sizes in whole requests",
    when="full CUDA graphs with speculation on the first model runner",
    then="captured sizes are rounded up to multiples of num_speculative_tokens + 1, those above the largest dropped; "
    "refused where none is left (a warning before 0.12)",
    releases="0.11.1-",
    source=_COMPILATION,
    stage=Stage.CACHE,
)
def whole_requests(launch: Launch) -> None:
    """A decode batch holds whole requests."""
    if not speculates(launch) or launch[GRAPH_MODE] not in _FULL or launch[RUNNER]:
        return
    width, largest = launch[TOKENS] + 1, launch[GRAPH_SIZE]
    if width > largest and launch.since("0.12"):
        named = "" if launch.since("0.32") else " or tp if sequence parallelism is enabled"
        launch.reject(
            f"No valid cudagraph sizes after rounding to multiple of {width} (num_speculative_tokens + 1{named}) please "
            f"adjust num_speculative_tokens ({width - 1}) or max_cudagraph_capture_size ({largest}) or "
            f"cudagraph_capture_sizes ({launch[_SIZES]})"
        )
    launch.remark(_SIZES, f"rounded up to multiples of {width}; sizes above {largest} are dropped")
