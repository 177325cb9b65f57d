"""Tests of the prompt optimizer."""
