"""Prompts that learn from trajectories: proposed, guarded, measured, and always taken back."""
