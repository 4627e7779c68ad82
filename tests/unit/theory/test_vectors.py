"""Every published input/output vector, at its own tolerance."""

# ruff: noqa: N803 - parameters are named as the vectors name them

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from analysis.theory import (
    chain,
    conversions,
    depth,
    divergence,
    drift,
    heterogeneity,
    intervals,
    load,
    payoff,
    positions,
    rates,
    replicas,
    sampling,
    training,
    trees,
)
from collector.domain.errors import ImpossibleFigure

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "theory_vectors.json").read_text())["vectors"]

RATE_NAMES = {
    "tau/n": rates.RateDefinition.LENGTH_WIDTH,
    "(tau-1)/(n-1)": rates.RateDefinition.ACCEPTED_DRAFTED,
    "(tau-1)/k": rates.RateDefinition.ACCEPTED_DEPTH,
    "tau/(k+1)": rates.RateDefinition.LENGTH_MAX_LENGTH,
}


def _implied(tau, k):
    try:
        return {"alpha": chain.implied_rate(tau, k)}
    except ImpossibleFigure:
        return {"alpha": None}


def _variance(alpha, k):
    own, binomial = chain.accepted_variance(alpha, k), chain.binomial_variance(alpha, k)
    return {"mean": chain.expected_length(alpha, k) - 1, "var": own, "binomial_var": binomial, "ratio": own / binomial}


def _positions(P):
    length = positions.length_from_prefix(P)
    return {
        "tau": length,
        "accepted_per_step": length - 1,
        "draft_acceptance_rate": (length - 1) / len(P),
        "conditional": list(positions.conditional_from_prefix(P)),
    }


def _conditional(conditional):
    prefix = positions.prefix_from_conditional(conditional)
    return {"P": list(prefix), "tau": positions.length_from_prefix(prefix)}


def _rate(definition, length, k, n):
    return rates.rate_from_length(length, definition, k, n)


def _bias(k, accepted_per_step):
    old = _rate(rates.RateDefinition.LENGTH_WIDTH, 1 + accepted_per_step, k, k + 1)
    strict = _rate(rates.RateDefinition.ACCEPTED_DRAFTED, 1 + accepted_per_step, k, k + 1)
    return {"old": old, "strict": strict, "bias": old - strict}


def _old_rate(accept_rate, num_draft_tokens):
    n = num_draft_tokens
    length = rates.length_from_rate(accept_rate, rates.RateDefinition.LENGTH_WIDTH, n - 1, n)
    return {"tau": length, "strict_rate": _rate(rates.RateDefinition.ACCEPTED_DRAFTED, length, n - 1, n)}


def _counts(counts):
    return {"steps": counts.steps, "tau": counts.length}


def _infer(accept_len, accept_rate, k, n):
    match = rates.infer_rate_definition(accept_len, accept_rate, k, n)
    return {
        "candidates": {name: match.candidates[definition] for name, definition in RATE_NAMES.items()},
        "nearest_first": next(name for name, definition in RATE_NAMES.items() if definition is match.definition),
    }


def _mixture(mean, concentration, k):
    mixture = heterogeneity.beta_mixture(mean, concentration, k)
    return {
        "tau_at_mean_alpha": mixture.at_mean,
        "tau_equal_tokens": mixture.equal_tokens,
        "tau_equal_steps": mixture.equal_steps,
        "P1_equal_tokens": mixture.first_position,
    }


def _best_tree(rank_probs, budget_nodes, max_depth):
    return {
        "tau": trees.best_tree(rank_probs, budget_nodes, max_depth)[0],
        "chain_tau": chain.expected_length(rank_probs[0], budget_nodes),
    }


def _speedup(alpha, k, c, v, overhead):
    length, ratio = chain.expected_length(alpha, k), payoff.step_cost(v, k, c, overhead)
    return {"tau": length, "rho": ratio, "speedup": length / ratio}


def _break_even(k, c, v):
    ratio = payoff.step_cost(v, k, c)
    return {"tau_star": ratio, "alpha_star": payoff.break_even_rate(ratio, k)}


def _decompose(throughput, tau, baseline_throughput, batch, k, alpha_claimed, rho_ref):
    expected = chain.expected_length(alpha_claimed, k)
    result = payoff.pay_off(
        length=tau,
        throughput=throughput,
        baseline_throughput=baseline_throughput,
        depth=k,
        realistic_length=expected,
        usual_step_cost=rho_ref,
        running=batch,
    )
    repairs = {repair.name: repair for repair in result.repairs}
    acceptance, cost = math.log(expected / tau), math.log(result.step_cost_ratio / rho_ref)
    return {
        "step_ms": result.step_seconds * 1000,
        "baseline_step_ms": result.baseline_step_seconds * 1000,
        "rho": result.step_cost_ratio,
        "speedup": result.speedup,
        "implied_alpha": chain.implied_rate(tau, k),
        "expected_tau": expected,
        "break_even_tau": result.break_even_length,
        "break_even_alpha": result.break_even_rate,
        "throughput_if_acceptance_fixed": repairs["acceptance_repaired"].throughput,
        "speedup_if_acceptance_fixed": repairs["acceptance_repaired"].speedup,
        "throughput_if_cost_fixed": repairs["step_cost_repaired"].throughput,
        "speedup_if_cost_fixed": repairs["step_cost_repaired"].speedup,
        "speedup_if_both_fixed": repairs["both_repaired"].speedup,
        "log_loss_total": math.log(repairs["both_repaired"].speedup / result.speedup),
        "log_loss_acceptance": acceptance,
        "log_loss_cost": cost,
        "share_acceptance": result.loss_share_acceptance,
        "share_cost": result.loss_share_step_cost,
        "accepted_ratio_r": (tau - 1) / (expected - 1),
    }


def _optimal(P, c, v_by_k):
    best = depth.best_depth(P, c, v_by_k)
    return {"k": best.fastest, "speedup_by_k": list(best.speedups)}


def _marginal(k, P_next, current_speedup, c, dv):
    add, threshold = depth.worth_another_position(P_next, current_speedup, c, dv)
    return {"threshold": threshold, "add_position": add}


def _overlap(p, q):
    both = float(sampling.overlap(p, q))
    return {
        "sum_min": both,
        "tv": 1 - both,
        "top1_agree": bool(sampling.agreement(p, q)),
        "greedy_draft_accept": float(sampling.greedy_draft_acceptance(p, q)),
    }


def _naive(accepted, steps, k, conf):
    """The interval every other tool uses, here only to show how narrow it is."""
    share = accepted / steps / k
    quantile = intervals.t_quantile(math.inf, conf)
    return {"tau": 1 + accepted / steps, "half_width": quantile * math.sqrt(k * share * (1 - share) / steps)}


def _jackknife(accepted, steps, conf):
    interval = intervals.request_interval(accepted, steps)
    pooled = interval.accepted_per_step
    residuals = [a - pooled * n for a, n in zip(accepted, steps, strict=True)]
    requests = len(steps)
    linear = math.sqrt(requests / (requests - 1) * math.fsum(r * r for r in residuals)) / sum(steps)
    return {
        "tau": interval.length,
        "se_linear": linear,
        "se_jackknife": interval.error,
        "g_eff": interval.degrees_of_freedom + 1,
        "dof": interval.degrees_of_freedom,
        "t": intervals.t_quantile(interval.degrees_of_freedom, conf),
        "tau_low": interval.length_low,
        "tau_high": interval.length_high,
    }


def _ewc(accepted_per_step, steps, nu, conf):
    interval = intervals.ewc_interval(accepted_per_step, steps, nu=nu)
    quantile = intervals.t_quantile(nu, conf)
    return {
        "n": interval.count,
        "mean": interval.accepted_per_step,
        "tau": interval.length,
        "se": interval.error,
        "t": quantile,
        "half_ewc": quantile * interval.error,
        "half_guarded": interval.half,
        "tau_low": interval.length_low,
        "tau_high": interval.length_high,
    }


def _cusum(z, K, h, cap):
    path, alarm = drift.cusum_path(z, K, h, cap)
    return {"path": path.tolist(), "alarm_index": alarm}


def _divergence(accepted_per_step, half_width, expected_accepted, delta):
    interval = intervals.Interval(accepted_per_step, half_width, half_width / 2, "ewc", 24, 3)
    test = divergence.divergence_test(interval, expected_accepted, delta)
    return {"r": test.retained_share, "r_low": test.low, "r_high": test.high, "verdict": test.verdict}


FUNCTIONS = {
    "expected_tau_chain": lambda alpha, k: {"tau": chain.expected_length(alpha, k)},
    "var_accepted_chain": _variance,
    "tau_from_positions": _positions,
    "tau_from_conditional": _conditional,
    "implied_alpha_chain": _implied,
    "sglang_rate_old": lambda accept_len, num_draft_tokens: {
        "accept_rate": _rate(rates.RateDefinition.LENGTH_WIDTH, accept_len, None, num_draft_tokens)
    },
    "sglang_rate_strict": lambda accept_len, num_draft_tokens: {
        "accept_rate": _rate(rates.RateDefinition.ACCEPTED_DRAFTED, accept_len, None, num_draft_tokens)
    },
    "sglang_rate_bias": _bias,
    "tau_from_old_sglang_rate": _old_rate,
    "tau_from_draft_rate_fixed_k": lambda accepted, drafted, k: _counts(conversions.from_drafted(accepted, drafted, k)),
    "tau_from_generated_and_accepted": lambda **given: _counts(conversions.from_generated(**given)),
    "tau_from_system_efficiency": lambda system_efficiency, k: {
        "tau": conversions.length_from_system_efficiency(system_efficiency, k)
    },
    "infer_rate_definition": _infer,
    "beta_mixture_tau": _mixture,
    "tree_expected_tau": lambda rank_probs, nodes: {"tau": trees.tree_length(rank_probs, nodes)},
    "tree_best": _best_tree,
    "tree_upper_bound": lambda topk_accuracy, k: {"tau_max": trees.tree_upper_bound(topk_accuracy, k)},
    "speedup": _speedup,
    "break_even_alpha": _break_even,
    "decompose": _decompose,
    "step_time": lambda running, accept_len, throughput: {
        "step_ms": payoff.step_seconds(running, accept_len, throughput) * 1000
    },
    "optimal_k": _optimal,
    "marginal_rule": _marginal,
    "expected_experts": lambda experts, active_per_token, tokens: {
        "distinct": load.expected_experts(experts, active_per_token, tokens)
    },
    "overlap": _overlap,
    "naive_binomial_tau": _naive,
    "cluster_ratio": _jackknife,
    "ewc_interval": _ewc,
    "ewc_nu": lambda n, request_lifetime_windows: {"nu": intervals.cosine_terms(n, request_lifetime_windows)},
    "implied_alpha_se": lambda tau, se_tau, k: {
        "alpha": chain.implied_rate(tau, k),
        "se_alpha": chain.implied_rate_error(tau, se_tau, k),
    },
    "cusum_down": _cusum,
    "cusum_arl0_siegmund": lambda K, h: {"arl0_one_sided": drift.siegmund_run_length(K, h)},
    "benjamini_hochberg": lambda p, q: {"rejected": list(replicas.benjamini_hochberg(p, q))},
    "divergence_verdict": _divergence,
    "oov_bounds": lambda in_vocab_metric, coverage: dict(
        zip(("alpha_low", "alpha_high"), training.draft_vocabulary_bounds(in_vocab_metric, coverage), strict=True)
    ),
}

LEFT_OUT = {"ewc_interval": {"half_iid"}}
"""The plain t interval alone is not exposed; it shows where it is the wider part of ``half_guarded``."""


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_vector(vector):
    found = FUNCTIONS[vector["fn"]](**vector["inputs"])
    expected = {key: value for key, value in vector["expected"].items() if key not in LEFT_OUT.get(vector["fn"], ())}
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        _compare(found[key], value, vector["abs_tol"], key)


def _compare(found, expected, tolerance, where):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            _compare(found[key], value, tolerance, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for index, value in enumerate(expected):
            _compare(found[index], value, tolerance, f"{where}[{index}]")
    elif isinstance(expected, float) and not isinstance(found, bool):
        assert found == pytest.approx(expected, abs=tolerance, rel=0), where
    else:
        assert found == expected, where


def test_every_vector_has_a_function_and_every_function_a_vector():
    assert {vector["fn"] for vector in VECTORS} == set(FUNCTIONS)
    assert len(VECTORS) == 132
