"""What the figures mean, what they imply, when a difference is real, and what it costs: pure functions."""
