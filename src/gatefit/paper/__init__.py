"""The paper's reproduction: everything that serves it alone. Only ``cli.app`` imports from here, lazily."""
