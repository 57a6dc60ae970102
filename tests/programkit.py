"""Programs that some tests need besides Python, and how a person gets them.

A test that needs one says so: `@pytest.mark.needs("bubblewrap")`, or `require("git")` in a kit.
What is too large for `make test` to fetch is marked `foreign` instead. On a machine without it the
test is skipped, and the summary has one line for all such tests.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from trimtab.providers.embedded.weights import is_usable
from trimtab.workspace.sandbox.detection import find_problem, try_all
from trimtab.workspace.sandbox.landlock import find_version

PACKAGES = {"ip": "iproute2", "ps": "procps"}
"""Programs that are in a package of another name."""
FOREIGN = Path(__file__).parents[1] / ".foreign"
"""Where `make foreign` puts what it fetches."""


def require(*needs: str) -> None:
    """Skip the running test if something it needs is missing."""
    for need in needs:
        if lack := find_lack(need):
            pytest.skip(lack)


@cache
def find_lack(need: str) -> str:
    """Return a sentence that ends with what to do about a missing need; empty if it is there."""
    if need in CHECKS:
        return CHECKS[need]()
    if shutil.which(need):
        return ""
    return f"{need} is not installed: apt install {PACKAGES.get(need, need)}"


def find_lack_of_bubblewrap() -> str:
    found = try_all(os.environ["PATH"])
    if found.backend == "bubblewrap":
        return ""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: apt install bubblewrap"
    return f"{found.reasons[0]}: run the tests where user namespaces are allowed"


def find_lack_of_landlock() -> str:
    problem = find_problem("landlock", "") if find_version() else "the kernel has none"
    return f"Landlock does not work here ({problem}): use Linux 5.13 or later" if problem else ""


def find_lack_of_namespaces() -> str:
    """Try what `bench/namespace.py` does: another network, with a device in it."""
    if lack := find_lack("ip"):
        return lack
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    device = "ip link add one type veth peer name two"
    tried = subprocess.run(
        ["unshare", *mapped, "--net", "sh", "-c", device], capture_output=True, check=False
    )
    if tried.returncode == 0:
        return ""
    return "network namespaces cannot be made here: run the tests as root or allow user namespaces"


def find_lack_of_package(folder: str, package: str) -> str:
    """Return why a package of npm cannot be used, or an empty text."""
    if shutil.which("node") is None:
        return "node is not installed: apt install npm, then make foreign"
    fetched = (FOREIGN / folder / "node_modules" / package).is_dir()
    return "" if fetched else f"{package} has not been fetched: make foreign"


def find_lack_of_sdk() -> str:
    return find_lack_of_package("copilot-sdk", "@github/copilot-sdk")


def find_lack_of_acp_sdk() -> str:
    return find_lack_of_package("acp-sdk", "@agentclientprotocol/sdk")


def find_lack_of_acpx() -> str:
    return find_lack_of_package("acpx", "acpx")


def find_lack_of_conformance() -> str:
    package = "@modelcontextprotocol/conformance"
    return (
        find_lack_of_package("node", "node")
        or find_lack_of_package("mcp-conformance", package)
        or find_lack_of_package("mcp-conformance-next", package)
    )


def find_lack_of_codex() -> str:
    return find_lack_of_package("codex", "@openai/codex")


def find_lack_of_claude() -> str:
    return find_lack_of_package("claude-code", "@anthropic-ai/claude-code")


def find_lack_of_opencode() -> str:
    return find_lack_of_package("opencode", "opencode-ai")


def find_lack_of_pi() -> str:
    return find_lack_of_package("pi", "@mariozechner/pi-coding-agent")


def find_lack_of_typescript_server() -> str:
    return find_lack_of_package("typescript-language-server", "typescript-language-server")


def find_lack_of_basedpyright() -> str:
    fetched = (FOREIGN / "basedpyright/bin/basedpyright-langserver").is_file()
    return "" if fetched else "basedpyright has not been fetched: make foreign"


def find_lack_of_gemini() -> str:
    return find_lack_of_package("gemini", "@google/gemini-cli")


def find_lack_of_copilot() -> str:
    return find_lack_of_package("copilot", "@github/copilot")


def find_lack_of_servers() -> str:
    """Return why the public MCP servers cannot be used."""
    packages = {"everything": "everything", "filesystem": "filesystem", "memory": "memory"}
    packages["thinking"] = "sequential-thinking"
    for folder, name in packages.items():
        if lack := find_lack_of_package(f"mcp-{folder}", f"@modelcontextprotocol/server-{name}"):
            return lack
    for name in ("mcp-server-time", "mcp-server-git"):
        if not (FOREIGN / name / "bin" / name).is_file():
            return f"{name} has not been fetched: make foreign"
    return ""


def find_lack_of_keyring() -> str:
    fetched = (FOREIGN / "keyring" / "keyrings").is_dir()
    return "" if fetched else "keyring has not been fetched: make foreign"


def find_lack_of_model() -> str:
    usable = is_usable(os.environ)
    return "" if usable else "the embedded model has not been fetched: make foreign"


CHECKS = {
    "acp-sdk": find_lack_of_acp_sdk,
    "acpx": find_lack_of_acpx,
    "basedpyright": find_lack_of_basedpyright,
    "bubblewrap": find_lack_of_bubblewrap,
    "claude-code": find_lack_of_claude,
    "codex": find_lack_of_codex,
    "opencode": find_lack_of_opencode,
    "pi": find_lack_of_pi,
    "gemini": find_lack_of_gemini,
    "copilot": find_lack_of_copilot,
    "keyring": find_lack_of_keyring,
    "landlock": find_lack_of_landlock,
    "mcp-conformance": find_lack_of_conformance,
    "mcp-servers": find_lack_of_servers,
    "network namespaces": find_lack_of_namespaces,
    "copilot-sdk": find_lack_of_sdk,
    "embedded model": find_lack_of_model,
    "typescript-language-server": find_lack_of_typescript_server,
}
