"""One training run as one HTML page: its curves, its gates over time and its diagnostics."""
