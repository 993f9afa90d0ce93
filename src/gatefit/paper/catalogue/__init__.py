"""The paper's labels, a module for each of its sections; ``paper.registry`` lists them."""
