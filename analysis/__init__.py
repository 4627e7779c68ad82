"""draftscope's analysis: theory, predictions, rules and the diagnosis they add up to."""
