"""Random kills and faults, long by hand (`make survival`), small in the integration tests."""
