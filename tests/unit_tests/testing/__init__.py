"""Tests of the published test helpers."""
