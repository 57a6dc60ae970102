"""Processors that belong to the loop itself; hooks and permissions bring their own."""
