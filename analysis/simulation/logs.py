"""Simulated runs as engines would have printed them.

The forms are those of SGLang 0.5.10 (``accept rate`` is length over width there) and vLLM 0.19.1.
Faults of printing and of declaring are applied here; what happened is in the simulation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from analysis.simulation.scenario import Fault, Scenario
from analysis.simulation.serving import Simulation, Windows

START: Final = 1_775_743_330.0
"""When simulated servers begin to launch, seconds since 1970 (2026-04-09 14:02:10 UTC)."""
LAUNCH_SECONDS: Final = 58.0
"""From launch to the first step."""
CACHE_TOKENS: Final = 400_000
VLLM_INTERVAL: Final = 10.0

_Timed = tuple[float, str]


def declared_depth(scenario: Scenario) -> int:
    """The depth that launch command and argument line state."""
    return scenario.depth - 2 if scenario.fault is Fault.MISDECLARED_DEPTH else scenario.depth


def sglang_launch(scenario: Scenario, port: int = 30000) -> str:
    """The command that starts such an SGLang server."""
    command = f"python3 -m sglang.launch_server --model-path /models/target --host 0.0.0.0 --port {port}"
    if scenario.depth == 0:
        return command + "\n"
    return (
        f"{command} --speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft"
        f" --speculative-num-steps {declared_depth(scenario)} --speculative-eagle-topk {scenario.branching}"
        f" --speculative-num-draft-tokens {_declared_width(scenario)}\n"
    )


def sglang_log(runs: Simulation | Mapping[str, Simulation]) -> str:
    """The log of a server, or of one with several ranks by their tags (``DP0 TP0``)."""
    by_tag = {"": runs} if isinstance(runs, Simulation) else dict(runs)
    scenario = next(iter(by_tag.values())).scenario
    lines: list[_Timed] = [
        (START, _sglang_arguments(scenario, len(by_tag))),
        (START + LAUNCH_SECONDS - 1, "The server is fired up and ready to roll!"),
    ]
    body: list[tuple[float, str, str]] = [(at, "", text) for at, text in lines]
    for tag, run in by_tag.items():
        prefix = f" {tag}" if tag else ""
        body += [(START + LAUNCH_SECONDS + at, prefix, text) for at, text in _sglang_batches(run)]
    body.sort(key=lambda line: line[0])
    return "".join(f"[{_stamp(at, '%Y-%m-%d %H:%M:%S')}{prefix}] {text}\n" for at, prefix, text in body)


def vllm_launch(scenario: Scenario, port: int = 8000) -> str:
    """The command that starts such a vLLM server."""
    command = f"vllm serve /models/target --port {port}"
    if scenario.depth == 0:
        return command + "\n"
    config = f'{{"method": "eagle3", "model": "/models/draft", "num_speculative_tokens": {declared_depth(scenario)}}}'
    return f"{command} --speculative-config '{config}'\n"


def vllm_log(run: Simulation) -> str:
    """The log of a vLLM server with one engine."""
    scenario = run.scenario
    speculative = "None"
    arguments = "'model': '/models/target'"
    if scenario.depth:
        depth = declared_depth(scenario)
        speculative = f"SpeculativeConfig(method='eagle3', model='/models/draft', num_spec_tokens={depth})"
        arguments += (
            ", 'speculative_config': {'method': 'eagle3', 'model': '/models/draft', "
            f"'num_speculative_tokens': {depth}}}"
        )
    lines: list[tuple[float, str, str]] = [
        (START, "utils.py:325", "vLLM API server version 0.19.1"),
        (START, "utils.py:261", f"non-default args: {{{arguments}}}"),
        (
            START + 6,
            "core.py:112",
            (
                "Initializing a V1 LLM engine (v0.19.1) with config: model='/models/target', "
                f"speculative_config={speculative}, tokenizer='/models/target', tensor_parallel_size=1, "
                "pipeline_parallel_size=1, data_parallel_size=1, quantization=None, kv_cache_dtype=auto"
            ),
        ),
    ]
    windows = run.windows(VLLM_INTERVAL)
    for index in range(windows.at.size):
        at = START + LAUNCH_SECONDS + float(windows.at[index])
        lines.append((at, "loggers.py:271", _vllm_engine(windows, index)))
        if scenario.depth:
            lines.append((at, "metrics.py:100", _vllm_speculation(scenario, windows, index)))
    return "".join(
        f"(APIServer pid=1904) INFO {_stamp(at, '%m-%d %H:%M:%S')} [{where}] {text}\n" for at, where, text in lines
    )


def _stamp(at: float, form: str) -> str:
    return time.strftime(form, time.gmtime(at))


def _declared_width(scenario: Scenario) -> int:
    return scenario.width if scenario.tree else declared_depth(scenario) + 1


def _sglang_arguments(scenario: Scenario, ranks: int) -> str:
    drafting: dict[str, object] = dict.fromkeys(
        (
            "speculative_algorithm",
            "speculative_draft_model_path",
            "speculative_num_steps",
            "speculative_eagle_topk",
            "speculative_num_draft_tokens",
        )
    )
    if scenario.depth:
        drafting = {
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": "/models/draft",
            "speculative_num_steps": declared_depth(scenario),
            "speculative_eagle_topk": scenario.branching,
            "speculative_num_draft_tokens": _declared_width(scenario),
        }
    fields: dict[str, object] = {
        "model_path": "/models/target",
        "tokenizer_path": "/models/target",
        "trust_remote_code": False,
        "context_length": None,
        "host": "0.0.0.0",  # noqa: S104 - text of a simulated log
        "port": 30000,
        "dtype": "auto",
        "quantization": None,
        "kv_cache_dtype": "auto",
        "max_running_requests": 48,
        "device": "cuda",
        "tp_size": max(1, ranks),
        "pp_size": 1,
        "decode_log_interval": scenario.interval,
        "dp_size": ranks,
        **drafting,
        "disable_cuda_graph": False,
        "disable_overlap_schedule": False,
        "enable_dp_attention": ranks > 1,
        "enable_two_batch_overlap": False,
        "disaggregation_mode": "null",
    }
    return "server_args=ServerArgs(" + ", ".join(f"{name}={value!r}" for name, value in fields.items()) + ")"


def _sglang_batches(run: Simulation) -> Iterator[_Timed]:
    """Prefill lines at the start of requests, decode lines at the end of windows."""
    yield from _sglang_prefills(run)
    scenario, windows = run.scenario, run.windows()
    width = scenario.width
    for index in range(windows.at.size):
        usage = windows.tokens_in_use[index] / CACHE_TOKENS
        length, rate = _printed(scenario, float(windows.length[index]), width)
        acceptance = f"accept len: {length:.2f}, accept rate: {rate:.2f}, " if scenario.depth else ""
        text = (
            f"Decode batch, #running-req: {scenario.running}, #token: {windows.tokens_in_use[index]:.0f}, "
            f"token usage: {usage:.2f}, {acceptance}cuda graph: True, "
            f"gen throughput (token/s): {windows.throughput[index]:.2f}, #queue-req: 0"
        )
        yield float(windows.at[index]), text


def _sglang_prefills(run: Simulation) -> Iterable[_Timed]:
    new = run.new_request
    begin = np.concatenate([[0.0], run.iteration_end[:-1]])
    for iteration in np.flatnonzero(new.any(axis=1)):
        fresh = new[iteration]
        prompts = int(run.walk.prompt[iteration][fresh].sum())
        count = int(fresh.sum())
        text = (
            f"Prefill batch, #new-seq: {count}, #new-token: {prompts}, #cached-token: 0, token usage: 0.00, "
            f"#running-req: {run.scenario.running - count}, #queue-req: 0, cuda graph: False, "
            f"input throughput (token/s): {prompts / max(run.scenario.prefill_seconds, 0.01):.2f}"
        )
        yield float(begin[iteration]), text


def _printed(scenario: Scenario, length: float, width: int) -> tuple[float, float]:
    """Length and rate as this release prints them, or as the fault makes it."""
    if scenario.depth == 0:
        return length, 0.0
    if scenario.fault is Fault.SWAPPED_RATE:
        return length, (length - 1) / scenario.depth
    if scenario.fault is Fault.DROPPED_BONUS:
        return length - 1, (length - 1) / width
    return length, length / width


def _vllm_engine(windows: Windows, index: int) -> str:
    usage = windows.tokens_in_use[index] / CACHE_TOKENS
    return (
        f"Engine 000: Avg prompt throughput: {windows.prompt_tokens[index] / VLLM_INTERVAL:.1f} tokens/s, "
        f"Avg generation throughput: {windows.generated[index] / VLLM_INTERVAL:.1f} tokens/s, "
        f"Running: {windows.running[index]:.0f} reqs, Waiting: 0 reqs, GPU KV cache usage: {usage:.1%}, "
        "Prefix cache hit rate: 0.0%"
    )


def _vllm_speculation(scenario: Scenario, windows: Windows, index: int) -> str:
    steps, accepted = windows.steps[index], windows.accepted[index]
    drafted = steps * scenario.depth
    bonus = 0 if scenario.fault is Fault.DROPPED_BONUS else 1
    shares = ", ".join(f"{share:.3f}" for share in windows.accepted_at[index] / steps)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {bonus + accepted / steps:.2f}, "
        f"Accepted throughput: {accepted / VLLM_INTERVAL:.2f} tokens/s, "
        f"Drafted throughput: {drafted / VLLM_INTERVAL:.2f} tokens/s, "
        f"Accepted: {accepted:.0f} tokens, Drafted: {drafted:.0f} tokens, "
        f"Per-position acceptance rate: {shares}, Avg Draft acceptance rate: {accepted / drafted:.1%}"
    )
