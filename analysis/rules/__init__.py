"""The catalogue of rules: one module a rule, below the family it belongs to."""
