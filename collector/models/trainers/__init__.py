"""Tools that train drafts: one module each, found by walking this package."""
