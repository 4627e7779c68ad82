"""Writes the boards for Grafana from the short descriptions below: boards/*.json. ``make docs`` runs it; a test compares.

Blue is measured, ochre is promised, grey is without speculation, red is a problem, as on the pages of draftscope.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOARDS = Path(__file__).parent / "boards"
COLOURS = {"measured": "#0a62b9", "promised": "#8f5400", "plain": "#656d77", "problem": "#b0241c", "even": "#626a74"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
ACROSS = 24

TOKENS, RATIO, PERCENT, SECONDS, SPEED, COUNT = "none", "none", "percentunit", "s", "none", "none"
"""Grafana's units; tokens, ratios and tokens a second have none of their own, their titles name them."""


@dataclass(frozen=True)
class Line:
    """One query and what its series are called; ``role`` gives one colour to all of them, else each has its own."""

    query: str
    legend: str
    role: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel, ``width`` of 24 columns. ``kind`` is Grafana's; a table shows one column a line."""

    title: str
    text: str
    lines: Sequence[Line]
    unit: str = "none"
    width: int = 8
    kind: str = "timeseries"
    height: int = 8


@dataclass(frozen=True)
class Board:
    """A board with its variables: name to query, whether several values may be chosen."""

    uid: str
    title: str
    text: str
    variables: dict[str, tuple[str, bool]]
    panels: Sequence[Panel]


def of_fleet(name: str) -> str:
    """A family of runs with the names of its run, restricted to the chosen deployments."""
    chosen = 'draftscope_run_info{deployment=~"$deployment"}'
    return f"{name} * on (instance, run) group_left (deployment, replica) {chosen}"


def of_replica(name: str) -> str:
    """The same for the chosen replica; a restart there is a new run and the same line."""
    chosen = 'draftscope_run_info{deployment=~"$deployment",replica=~"$replica"}'
    return f"{name} * on (instance, run) group_left (replica) {chosen}"


def quantile(share: float, histogram: str, by: str = "instance") -> str:
    """A quantile of a native histogram of an engine."""
    rate = f'rate({histogram}_bucket{{instance=~"$instance"}}[$__rate_interval])'
    return f"histogram_quantile({share}, sum by ({by}, le) ({rate}))"


def latency(title: str, text: str, histogram: str) -> Panel:
    """Median and 90th percentile."""
    lines = [
        Line(quantile(0.5, histogram), "{{instance}} p50", "measured"),
        Line(quantile(0.9, histogram), "{{instance}} p90"),
    ]
    return Panel(title, text, lines, SECONDS)


def of_engine(name: str) -> str:
    """A gauge of the chosen instances."""
    return f'{name}{{instance=~"$instance"}}'


def rate_of(name: str) -> str:
    """A counter's rate on the chosen instances."""
    return f"rate({of_engine(name)}[$__rate_interval])"


def share_of(part: str, whole: str) -> str:
    """The ratio of two counters' rates on each instance, whatever labels one of them has; none while the second rests."""
    return f"sum by (instance) ({rate_of(part)}) / (sum by (instance) ({rate_of(whole)}) > 0)"


def queue(running: str, waiting: str) -> Panel:
    """What an engine works on."""
    lines = [
        Line(of_engine(running), "{{instance}} running", "measured"),
        Line(of_engine(waiting), "{{instance}} waiting", "problem"),
    ]
    return Panel("Requests", "Running and waiting.", lines, COUNT)


def drafting(server: str, generated: str, counted: str = "") -> list[Panel]:
    """Drafts by the counters that vLLM and llama.cpp call by the same names; ``generated`` is that of all tokens."""
    drafts, drafted, accepted, accepted_at = (
        f"{server}:spec_decode_num_{name}_total"
        for name in ("drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos")
    )
    return [
        Panel(
            "Acceptance length, tokens a step", f"The target's own token included{counted}.",
            [Line(f"1 + {share_of(accepted, drafts)}", "{{instance}}", "measured")], TOKENS, 12,
        ),
        Panel(
            "Accepted of drafted", "Without the target's own token.",
            [Line(share_of(accepted, drafted), "{{instance}}", "measured")], PERCENT, 12,
        ),
        Panel(
            "Accepted by position", "Share of drafts whose token at this position was accepted; the first is 0.",
            [Line(
                f"sum by (instance, position) ({rate_of(accepted_at)}) / on (instance) group_left () "
                f"(sum by (instance) ({rate_of(drafts)}) > 0)",
                "{{instance}} position {{position}}",
            )],
            PERCENT,
        ),
        Panel(
            "Tokens, per second", "Drafted, accepted and generated.",
            [
                Line(rate_of(drafted), "{{instance}} drafted", "plain"),
                Line(rate_of(accepted), "{{instance}} accepted", "measured"),
                Line(rate_of(generated), "{{instance}} generated", "even"),
            ],
            SPEED,
        ),
    ]  # fmt: skip


FLEET = Board(
    "draftscope-fleet",
    "Speculative decoding: fleet",
    "Every run that draftscope sees: is it accepted as often as it should be, and does it pay?",
    {"deployment": ("label_values(draftscope_run_info, deployment)", True)},
    [
        Panel("Runs", "Places that gave a sign of life lately.", [Line("draftscope_present_runs", "runs")], COUNT, 4, "stat", 5),
        Panel(
            "Problems", "Runs by the question that was answered with a problem.",
            [Line(f'sum by (question) ({of_fleet("""draftscope_verdict{state="problem"}""")})', "{{question}}", "problem")],
            COUNT, 10, "stat", 5,
        ),
        Panel(
            "Cannot tell", "Runs by the question that nothing could answer; this is not fine, it is not known.",
            [Line(f'sum by (question) ({of_fleet("""draftscope_verdict{state="cannot_tell"}""")})', "{{question}}", "plain")],
            COUNT, 10, "stat", 5,
        ),
        Panel(
            "Acceptance length, tokens a step", "Over the whole run, the target's own token included.",
            [Line(of_fleet("draftscope_acceptance_length_tokens"), "{{replica}}")], TOKENS, 12,
        ),
        Panel(
            "Speed-up", "Throughput over that without speculation at equal load; below 1 speculation is a loss.",
            [Line(of_fleet("draftscope_speedup_ratio"), "{{replica}}")], RATIO, 12,
        ),
        Panel(
            "Runs in figures", "The present run of every replica.",
            [
                Line(of_fleet("draftscope_acceptance_length_tokens"), "length"),
                Line(of_fleet("draftscope_realistic_acceptance_length_tokens"), "healthy"),
                Line(of_fleet("draftscope_break_even_acceptance_length_tokens"), "break-even"),
                Line(of_fleet("draftscope_speedup_ratio"), "speed-up"),
                Line(of_fleet("draftscope_step_cost_ratio"), "step cost"),
                Line(of_fleet("draftscope_overridden_arguments"), "overridden flags"),
                Line(of_fleet("draftscope_data_age_seconds"), "age, s"),
            ],
            "none", 24, "table", 9,
        ),
        Panel(
            "Kept of promised drafts", "Accepted per step over what validation implies; about 82% is healthy at depth 5.",
            [Line(of_fleet("draftscope_retained_acceptance_ratio"), "{{replica}}")], PERCENT,
        ),
        Panel(
            "Throughput, tokens/s", "Summed over the replicas of a deployment.",
            [Line(f"sum by (deployment) ({of_fleet('draftscope_generation_throughput_tokens_per_second')})", "{{deployment}}")],
            SPEED,
        ),
        Panel(
            "Open findings", "By rule; draftscope explain RULE says what it means.",
            [Line(f"sum by (rule, severity) ({of_fleet('draftscope_open_findings')})", "{{rule}} {{severity}}")], COUNT,
        ),
        Panel(
            "Drift statistic", "Shortfall of acceptance against the start of the run; 0 is none.",
            [Line(of_fleet("draftscope_drift_statistic"), "{{replica}}")],
        ),
        Panel(
            "Age of the data", "Since the last sign of life of a run.",
            [Line(of_fleet("draftscope_data_age_seconds"), "{{replica}}")], SECONDS,
        ),
        Panel(
            "Lag of verdicts and alerts", "How far judging is behind the data, and how long the oldest alert waits.",
            [
                Line("draftscope_judging_lag_seconds", "verdicts", "measured"),
                Line("draftscope_alert_delivery_lag_seconds", "alerts to {{channel}}", "problem"),
            ],
            SECONDS,
        ),
        Panel(
            "Scrapes of engines, per minute", "By draftscope serve, and those of them that failed.",
            [
                Line("60 * sum by (instance) (rate(draftscope_target_scrapes_total[$__rate_interval]))", "stored", "measured"),
                Line("60 * sum by (instance) (rate(draftscope_target_failures_total[$__rate_interval]))", "failed", "problem"),
            ],
        ),
        Panel(
            "Lines not understood", "Share of the engines' lines in all sources.",
            [Line("draftscope_unread_lines / (draftscope_engine_lines > 0)", "{{instance}}", "problem")], PERCENT,
        ),
        Panel(
            "Alerts", "Stored messages by channel and where they stand.",
            [Line("sum by (channel, status) (draftscope_alert_deliveries)", "{{channel}} {{status}}")], COUNT,
        ),
    ],
)  # fmt: skip

RUN = Board(
    "draftscope-run",
    "Speculative decoding: run",
    "One replica: what is measured, what was promised, and where speculation neither gains nor loses.",
    {
        "deployment": ("label_values(draftscope_run_info, deployment)", True),
        "replica": ('label_values(draftscope_run_info{deployment=~"$deployment"}, replica)', False),
    },
    [
        Panel(
            "Verdicts", "The four questions and their answers.",
            [Line(f"max by (question, state) ({of_replica('draftscope_verdict')}) == 1", "{{question}}: {{state}}")],
            "none", 24, "stat", 4,
        ),
        Panel(
            "Acceptance length, tokens a step",
            "Of the last ten minutes and of the whole run, what a healthy deployment delivers, what validation promises, "
            "and where speculation neither gains nor loses.",
            [
                Line(
                    of_replica("(1 + rate(draftscope_accepted_tokens_total[10m]) / (rate(draftscope_verify_steps_total[10m]) > 0))"),
                    "last 10 minutes", "measured",
                ),
                Line(of_replica("draftscope_acceptance_length_tokens"), "whole run", "measured"),
                Line(of_replica("draftscope_realistic_acceptance_length_tokens"), "healthy", "promised"),
                Line(of_replica("draftscope_expected_acceptance_length_tokens"), "promised", "promised"),
                Line(of_replica("draftscope_break_even_acceptance_length_tokens"), "break-even", "even"),
                Line(of_replica("draftscope_max_acceptance_length_tokens"), "at most", "plain"),
            ],
            TOKENS, 16, height=10,
        ),
        Panel(
            "Speed-up and step cost", "Throughput and time of a step over those without speculation.",
            [
                Line(of_replica("draftscope_speedup_ratio"), "speed-up", "measured"),
                Line(of_replica("draftscope_step_cost_ratio"), "step cost, plain steps", "even"),
            ],
            RATIO, height=10,
        ),
        Panel(
            "Accepted by position", "Share of steps whose draft at this position was accepted; falls with position.",
            [Line(of_replica("draftscope_position_acceptance_ratio"), "position {{position}}")], PERCENT,
        ),
        Panel(
            "Accepted by position, given the one before", "A fall at one position points to a cause.",
            [Line(of_replica("draftscope_conditional_position_acceptance_ratio"), "position {{position}}")], PERCENT,
        ),
        Panel(
            "Acceptance", "Of all drafted tokens; given that the one before was accepted; and kept of what was promised.",
            [
                Line(of_replica("draftscope_draft_acceptance_ratio"), "of drafted", "measured"),
                Line(of_replica("draftscope_conditional_acceptance_ratio"), "conditional", "measured"),
                Line(of_replica("draftscope_retained_acceptance_ratio"), "of promised", "promised"),
            ],
            PERCENT,
        ),
        Panel(
            "Throughput, tokens/s", "With speculation, and in the comparable run without.",
            [
                Line(of_replica("draftscope_generation_throughput_tokens_per_second"), "this run", "measured"),
                Line(of_replica("draftscope_baseline_throughput_tokens_per_second"), "without speculation", "plain"),
            ],
            SPEED,
        ),
        Panel(
            "Tokens, per second", "Drafted, accepted and generated.",
            [
                Line(of_replica("rate(draftscope_drafted_tokens_total[10m])"), "drafted", "plain"),
                Line(of_replica("rate(draftscope_accepted_tokens_total[10m])"), "accepted", "measured"),
                Line(of_replica("rate(draftscope_generated_tokens_total[10m])"), "generated", "even"),
            ],
            SPEED,
        ),
        Panel("Step time", "Time of one iteration of the batch.",
              [Line(of_replica("draftscope_step_seconds"), "step", "measured")], SECONDS),
        Panel(
            "Drift", "The statistic, and the threshold from which acceptance counts as drifted.",
            [
                Line(of_replica("draftscope_drift_statistic"), "statistic", "measured"),
                Line(of_replica("draftscope_drift_threshold"), "threshold", "problem"),
            ],
        ),
        Panel("Running requests", "Averaged over windows.",
              [Line(of_replica("draftscope_running_requests"), "running", "measured")], COUNT),
        Panel(
            "Draft", "Depth, and tokens verified a step.",
            [
                Line(of_replica("draftscope_draft_depth_tokens"), "depth", "measured"),
                Line(of_replica("draftscope_verify_width_tokens"), "verified", "plain"),
            ],
            TOKENS,
        ),
        Panel("Open findings", "By rule; draftscope explain RULE says what it means.",
              [Line(of_replica("draftscope_open_findings"), "{{rule}} {{severity}}")], COUNT),
        Panel(
            "Launch arguments", "That run with another value than asked, or than in the run before.",
            [
                Line(of_replica("draftscope_overridden_arguments"), "overridden", "problem"),
                Line(of_replica("draftscope_changed_arguments"), "changed", "measured"),
            ],
            COUNT,
        ),
        Panel("Age of the data", "Since the last sign of life.",
              [Line(of_replica("draftscope_data_age_seconds"), "age", "measured")], SECONDS),
    ],
)  # fmt: skip


def engine_board(server: str, title: str, probe: str, panels: Sequence[Panel]) -> Board:
    """A board on what an engine exports itself."""
    text = "From the engine's own metrics; draftscope need not run. What is missing, this release does not export."
    return Board(
        f"engine-{server}",
        f"Speculative decoding: {title}",
        text,
        {"instance": (f"label_values({probe}, instance)", True)},
        panels,
    )


SGLANG = engine_board(
    "sglang", "SGLang", "sglang:num_running_reqs",
    [
        Panel(
            "Acceptance length, tokens a step",
            "As each scheduler prints it, the target's own token included. It holds its last value while nothing runs.",
            [Line(of_engine("sglang:spec_accept_length"), "{{instance}} {{dp_rank}}", "measured")], TOKENS, 12,
        ),
        Panel(
            "Acceptance length of finished requests, tokens a step", "From counters, 0.5.13 and later: all ranks together.",
            [Line(share_of("sglang:generation_tokens_total", "sglang:spec_verify_calls_total"), "{{instance}}", "measured")],
            TOKENS, 12,
        ),
        Panel(
            "Accept rate as printed", "Its definition changed between releases: compare within one release alone.",
            [Line(of_engine("sglang:spec_accept_rate"), "{{instance}} {{dp_rank}}", "plain")], PERCENT,
        ),
        Panel(
            "Draft steps and tokens verified", "What runs, 0.5.13 and later; 0 where nothing is drafted.",
            [
                Line(of_engine("sglang:spec_num_steps"), "{{instance}} steps", "measured"),
                Line(of_engine("sglang:spec_num_draft_tokens"), "{{instance}} verified", "plain"),
            ],
            TOKENS,
        ),
        Panel("Throughput, tokens/s", "Of each scheduler.",
              [Line(of_engine("sglang:gen_throughput"), "{{instance}} {{dp_rank}}", "measured")], SPEED),
        queue("sglang:num_running_reqs", "sglang:num_queue_reqs"),
        Panel("Cache usage", "Share of the key-value cache in use.",
              [Line(of_engine("sglang:token_usage"), "{{instance}} {{dp_rank}}", "measured")], PERCENT),
        Panel(
            "Passes by kind, per second", "Decode passes without a CUDA graph are dear.",
            [Line(rate_of("sglang:cuda_graph_passes_total"), "{{instance}} {{mode}}")], COUNT,
        ),
        latency("Time to first token", "Of requests.", "sglang:time_to_first_token_seconds"),
        latency("Time between tokens", "Per token: several of one step share its time.", "sglang:inter_token_latency_seconds"),
        latency("Request latency", "From arrival to the last token.", "sglang:e2e_request_latency_seconds"),
    ],
)  # fmt: skip

VLLM = engine_board(
    "vllm", "vLLM", "vllm:num_requests_running",
    [
        *drafting("vllm", "vllm:generation_tokens_total"),
        queue("vllm:num_requests_running", "vllm:num_requests_waiting"),
        Panel(
            "Cache usage", "Share of the key-value cache in use; the second name is that of earlier releases.",
            [Line(f'{of_engine("vllm:kv_cache_usage_perc")} or {of_engine("vllm:gpu_cache_usage_perc")}', "{{instance}}", "measured")],
            PERCENT,
        ),
        Panel("Cached share of prompts", "Tokens of prompts found in the prefix cache.",
              [Line(share_of("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"), "{{instance}}", "measured")],
              PERCENT),
        Panel("Preemptions, per second", "Requests that were pushed out of the cache.",
              [Line(rate_of("vllm:num_preemptions_total"), "{{instance}}", "problem")], COUNT),
        latency("Time to first token", "Of requests.", "vllm:time_to_first_token_seconds"),
        latency("Time of a step", "vLLM calls it the latency between tokens: one observation a step and request.",
                "vllm:inter_token_latency_seconds"),
        latency("Time per output token", "A request's decode time over its tokens after the first.",
                "vllm:request_time_per_output_token_seconds"),
        latency("Request latency", "From arrival to the last token.", "vllm:e2e_request_latency_seconds"),
    ],
)  # fmt: skip

LLAMACPP = engine_board(
    "llamacpp", "llama.cpp", "llamacpp:requests_processing",
    [
        *drafting("llamacpp", "llamacpp:tokens_predicted_total", "; counted when a request ends"),
        Panel(
            "Tokens per second of decoding", "While it decodes: generated tokens over the time spent on them.",
            [Line(share_of("llamacpp:tokens_predicted_total", "llamacpp:tokens_predicted_seconds_total"), "{{instance}}", "measured")],
            SPEED,
        ),
        queue("llamacpp:requests_processing", "llamacpp:requests_deferred"),
        Panel("Batches, per second", "Of all slots, verification included.",
              [Line(rate_of("llamacpp:n_decode_total"), "{{instance}}", "measured")], COUNT),
    ],
)  # fmt: skip

ALL = (FLEET, RUN, SGLANG, VLLM, LLAMACPP)


def document(board: Board) -> dict[str, Any]:
    """The board as Grafana reads it."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.text,
        "tags": ["draftscope", "speculative decoding"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "graphTooltip": 1,
        "annotations": {"list": []},
        "links": [{"type": "dashboards", "tags": ["draftscope"], "asDropdown": True, "title": "Speculative decoding",
                   "includeVars": True, "keepTime": True, "targetBlank": False, "icon": "external link", "url": ""}],
        "templating": {"list": [_source(), *(_variable(name, *how) for name, how in board.variables.items())]},
        "panels": list(_placed(board.panels)),
    }  # fmt: skip


def _source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {},
            "hide": 0, "regex": "", "refresh": 1, "options": []}  # fmt: skip


def _variable(name: str, query: str, several: bool) -> dict[str, Any]:
    everything = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return {
        "name": name, "label": name.capitalize(), "type": "query", "datasource": SOURCE, "definition": query,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "hide": 0, "regex": "", "options": [],
        "includeAll": several, "multi": several, "allValue": ".*" if several else None,
        "current": everything if several else {},
    }  # fmt: skip


def _placed(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """From left to right, in rows."""
    x = y = tallest = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > ACROSS:
            x, y, tallest = 0, y + tallest, 0
        yield _panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": panel.height})
        x, tallest = x + panel.width, max(tallest, panel.height)


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    instant = panel.kind != "timeseries"
    letters = [chr(ord("A") + i) for i in range(len(panel.lines))]
    shown: dict[str, Any] = {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.text, "datasource": SOURCE,
        "gridPos": place,
        "targets": [
            {"refId": letter, "datasource": SOURCE, "expr": line.query, "legendFormat": line.legend, "instant": instant,
             "range": not instant, "format": "table" if panel.kind == "table" else "time_series", "editorMode": "code"}
            for letter, line in zip(letters, panel.lines, strict=True)
        ],
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "custom": _DRAWN if panel.kind == "timeseries" else {}},
            "overrides": [_coloured(letter, line) for letter, line in zip(letters, panel.lines, strict=True) if line.role],
        },
        "options": _OPTIONS[panel.kind],
    }  # fmt: skip
    if panel.kind == "table":
        shown["transformations"] = _table(letters, panel.lines)
    return shown


_DRAWN = {"drawStyle": "line", "lineWidth": 2, "fillOpacity": 0, "showPoints": "never", "spanNulls": False}
_REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {"reduceOptions": _REDUCED, "textMode": "value_and_name", "colorMode": "value", "graphMode": "none"},
    "table": {"showHeader": True},
}


def _coloured(letter: str, line: Line) -> dict[str, Any]:
    dashed = line.role in ("promised", "even")
    drawn = [{"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}}] if dashed else []
    colour = {"id": "color", "value": {"mode": "fixed", "fixedColor": COLOURS[line.role]}}
    return {"matcher": {"id": "byFrameRefID", "options": letter}, "properties": [colour, *drawn]}


def _table(letters: Sequence[str], lines: Sequence[Line]) -> list[dict[str, Any]]:
    """One row a run: the frames joined, columns under the names of the lines."""
    names = {f"Value #{letter}": line.legend for letter, line in zip(letters, lines, strict=True)}
    hidden = dict.fromkeys(("Time", "__name__", "instance", "job"), True)
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"renameByName": names, "excludeByName": hidden}},
    ]


def text_of(board: Board) -> str:
    """The board's file."""
    return json.dumps(document(board), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every board."""
    for board in ALL:
        (BOARDS / f"{board.uid}.json").write_text(text_of(board), encoding="utf-8")


if __name__ == "__main__":
    main()
