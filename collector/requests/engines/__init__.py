"""One module per engine: where its responses hold their figures, and what these count by release."""
