"""A simulator of speculative decoding with known truth, for tests, studies and demonstrations."""
