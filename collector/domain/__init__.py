"""Plain types that every other part of draftscope shares. No I/O, no third-party imports."""
