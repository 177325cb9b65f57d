"""Kills, contention and random work: long by `make survival`, small in the integration tests."""
