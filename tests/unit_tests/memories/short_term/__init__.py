"""Tests of the short-term memories."""
