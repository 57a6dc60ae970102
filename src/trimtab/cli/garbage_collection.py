"""Delays garbage collection until start-up is done: imports free little of what they allocate."""

import gc


def enable_collection() -> None:
    """Collect garbage from now on, without scanning the objects that exist already."""
    gc.freeze()
    gc.enable()
