"""Starts the program; answers `--version` before anything else is imported."""

import sys


def main() -> int:
    """Run the console script and return its exit code."""
    argv = sys.argv[1:]
    try:
        if argv in (["--version"], ["-v"]):
            return print_version()
        import gc

        gc.disable()  # `cli.garbage_collection` enables it after start-up
        cache = None
        if __name__ != "__main__":  # `python -m` looks for modules in the current directory first
            from trimtab.cli.module_cache import open_cache

            cache = open_cache()
        from trimtab.cli.light_uuid import import_uuid

        import_uuid()
        from trimtab.cli.main import main as run

        code = run(argv)
        if cache is not None:
            cache.save()
        return code
    except KeyboardInterrupt:  # Ctrl-C while modules are loaded
        return 130


def print_version() -> int:
    """Print the version; return the exit code."""
    from trimtab.version import __version__

    try:
        print(f"Trimtab {__version__}", flush=True)
    except OSError as error:
        from trimtab.cli.streams import report_lost_output

        return report_lost_output(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
