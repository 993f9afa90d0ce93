"""What serves only the reproduction of the paper."""
