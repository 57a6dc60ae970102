"""Starts the program; answers `--version` before anything else is imported."""

import sys


def main() -> int:
    """The console script."""
    argv = sys.argv[1:]
    if argv in (["--version"], ["-v"]):
        from trimtab.version import __version__

        print(f"Trimtab {__version__}")
        return 0
    import gc

    gc.disable()  # `cli.collector` wakes it when the start is over
    from trimtab.cli.main import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
