"""Is the draft wired as it was trained? Rules about draft and target models."""
