"""The paper's labels, a module for each of its sections; ``experiments.registry`` lists them."""
