"""`make foreign`: fetches large foreign programs, which the tests marked `foreign` use.

npm packages and Python programs go to `.foreign`, each into a folder of its own; the embedded model goes to the user's
cache, as with `trimtab models pull`. What is there already is kept.
"""

import os
import shutil
import subprocess
import sys

from programkit import FOREIGN
from trimtab.contracts.errors import ConfigurationError
from trimtab.providers.embedded.pull import pull
from trimtab.providers.embedded.weights import is_usable

PACKAGES = {
    "copilot-sdk": ("@github/copilot-sdk", "--omit=optional"),  # without the program it is for
    "acp-sdk": ("@agentclientprotocol/sdk",),
    "acpx": ("acpx",),
    "codex": ("@openai/codex",),
    "node": ("node@22",),  # what the suites of MCP need; Debian's may be older
    "mcp-conformance": ("@modelcontextprotocol/conformance@0.1.16",),
    "mcp-conformance-next": ("@modelcontextprotocol/conformance@0.2.0-alpha.12",),
    "claude-code": ("@anthropic-ai/claude-code",),
    "opencode": ("opencode-ai",),
    "pi": ("@mariozechner/pi-coding-agent",),
    "typescript-language-server": ("typescript-language-server", "typescript@5"),
    "gemini": ("@google/gemini-cli",),
    "copilot": ("@github/copilot",),
    "mcp-everything": ("@modelcontextprotocol/server-everything",),
    "mcp-filesystem": ("@modelcontextprotocol/server-filesystem",),
    "mcp-memory": ("@modelcontextprotocol/server-memory",),
    "mcp-thinking": ("@modelcontextprotocol/server-sequential-thinking",),
}
"""Folder → package, with a version where the tests depend on it, and flags of npm."""
PYTHON_PROGRAMS = ("basedpyright", "mcp-server-time", "mcp-server-git")
QUIET = ("--no-audit", "--no-fund", "--silent")


def fetch_packages() -> bool:
    """Install what npm has; without npm say what to install."""
    if shutil.which("npm") is None:
        print("npm is not installed: apt install npm, then make foreign")
        return True
    complete = True
    for name, (package, *flags) in PACKAGES.items():
        folder = FOREIGN / name
        if (folder / "node_modules" / name_of(package)).is_dir():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        print(f"fetching {package}", flush=True)
        # Without --prefix npm would look for a package.json above, where the project may have one.
        install = ["npm", "install", *QUIET, *flags, "--prefix", str(folder), package]
        if subprocess.run(install, check=False).returncode:
            print(f"npm could not install {package}: check the network, then make foreign")
            complete = False
    return complete


def name_of(package: str) -> str:
    """Return a package's name without its version."""
    return package[0] + package[1:].partition("@")[0]


def fetch_keyring() -> bool:
    """Install the package that reaches keyrings, and a keyring that is a file."""
    folder = FOREIGN / "keyring"
    if (folder / "keyrings").is_dir():
        return True
    print("fetching keyring", flush=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    if subprocess.run([*install, "keyring", "keyrings.alt"], check=False).returncode:
        print("pip could not install keyring: check the network, then make foreign")
        return False
    return True


def fetch_python_programs() -> bool:
    """Install programs from PyPI, each into an environment of its own."""
    complete = True
    for name in PYTHON_PROGRAMS:
        folder = FOREIGN / name
        if (folder / "bin" / name).is_file():
            continue
        print(f"fetching {name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(folder / "bin/pip"), "install", "--quiet", name]
        if subprocess.run(install, check=False).returncode:
            print(f"pip could not install {name}: check the network, then make foreign")
            complete = False
    return complete


def fetch_model() -> bool:
    if is_usable(os.environ):
        return True
    print("fetching the embedded model (1.1 GB)", flush=True)
    try:
        pull(os.environ, lambda *_: None)
    except ConfigurationError as error:
        print(error.message)
        return False
    return True


if __name__ == "__main__":
    # All are tried whatever becomes of the others.
    outcomes = [fetch_packages(), fetch_python_programs(), fetch_keyring(), fetch_model()]
    sys.exit(0 if all(outcomes) else 1)
