"""Tests of MemGPT."""
