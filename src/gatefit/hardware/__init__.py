"""From a circuit to FPGA figures: real tools synthesise, place, route and simulate it, and the results are compared."""
