"""Tests against real servers, real files and real processes."""
