"""``/metrics``: the stored judgements as Prometheus metrics."""
