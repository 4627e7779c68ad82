"""The HTTP API, its errors and its guards."""
