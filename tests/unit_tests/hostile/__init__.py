"""Hostile model replies against an independent model of the store."""
