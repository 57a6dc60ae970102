"""Presents a plan for approval."""
