"""Runs a command where the network is loopback and one dead end, and counts what went there.

`python bench/namespace.py COMMAND…`; without a command the whole test suite. The dead end has a
default route, so every packet to another machine and every name look-up is counted on it.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSIDE = "TRIMTAB_IN_NAMESPACE"
DEAD_END = "deadend0"
SUITE = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-n",
    "2",
    "--dist",
    "worksteal",
    "-p",
    "no:cacheprovider",
    "tests",
]


def enter(command: list[str]) -> int:
    """The same program again, in a namespace of its own."""
    env = {**os.environ, INSIDE: "1"}
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    inside = ["unshare", *mapped, "--net", sys.executable, __file__, *command]
    return subprocess.run(inside, env=env, check=False).returncode


def build_network() -> None:
    for words in (
        "link set lo up",
        f"link add {DEAD_END} type veth peer name deadend1",
        "link set deadend1 up",
        f"addr add 192.0.2.1/24 dev {DEAD_END}",
        f"link set {DEAD_END} up",
        "route add default via 192.0.2.2",
    ):
        subprocess.run(["ip", *words.split()], check=True)


def sent_elsewhere() -> int:
    """Packets that were sent to the dead end."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == DEAD_END:
            return int(numbers.split()[9])
    raise LookupError(DEAD_END)


def silence() -> None:
    """IPv6 announces a new interface by itself; that is not ours to count."""
    for place in ("all", "default"):
        path = Path(f"/proc/sys/net/ipv6/conf/{place}/disable_ipv6")
        if path.exists():
            path.write_text("1")


def main() -> int:
    command = sys.argv[1:] or SUITE
    if not os.environ.get(INSIDE):
        return enter(command)
    silence()
    build_network()
    env = {name: value for name, value in os.environ.items() if name != INSIDE}
    code = subprocess.run(command, cwd=None if sys.argv[1:] else ROOT, env=env, check=False)
    packets = sent_elsewhere()
    print(f"{packets} packets to other machines", file=sys.stderr)
    return code.returncode or bool(packets)


if __name__ == "__main__":
    sys.exit(main())
