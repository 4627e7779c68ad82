"""Where bytes come from: files and the standard input."""
