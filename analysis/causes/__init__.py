"""What could explain the findings: one module a cause, weighed against each other."""
