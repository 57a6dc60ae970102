"""The version, a constant so that `--version` needs no package metadata."""

__version__ = "0.1.0"
