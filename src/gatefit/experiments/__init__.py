"""The paper's tables and figures as resumable experiments, keyed by its LaTeX labels."""
