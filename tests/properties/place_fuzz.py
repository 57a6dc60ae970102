"""Random scripts that change files, run by a real bash: is each file among those that were judged?

A rule for writing covers a script if every word in it is certain and every path inside. Scripts are
made of what changes words and places: assignments, loops, functions, `cd`, subshells. Where such a
rule covers one, bash runs it with a `touch` that only notes what it is given. Run as a program with
the number of cases and, if wanted, a seed.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from permissionkit import rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.decide_shell import judge_analysis
from trimtab.permissions.shell.verdict.analyse import analyse

STUB = """#!/bin/dash
for word; do
    case $word in
        --) ;;
        /*) printf '%s\\0' "$word" ;;
        *) printf '%s\\0' "$(pwd -P)/$word" ;;
    esac
done >> "$STUB_LOG"
"""
REAL = ("bash", "env", "cat", "nice")
NAMES = ("D", "E", "UID", "COLUMNS")
FOLDERS = ("src", "lib", "a/b/c", "link", "nosuch", "..", ".", ".git", "src/..", "link/..", "a/b")
VALUES = (
    *("src", "lib", "'a b'", '"a/b"', "a:~/x", "~/x", "~+", "'*'", "{a,b}", "$D", "$E", '"$D"x'),
    *("$PWD", "$(pwd)", "$'\\x61'", "$'\\xc3\\xa9'", "$'a\\u00a0b'", "x=~/y", "''", "é", "A"),
)
WORDS = (
    *("made", "../made", "../../made", "config", "$D", '"$D"', "$D/made", '"$D/made"', "${D}x"),
    *("$E", "$E/made", "$D$E", "~+/made", "$PWD/made", "$(pwd)/made", "{src,lib}/made", "a=~/x"),
    *("~/made", "src{1,2}", "$'src/\\x61'", '"${D}"/{a,b}', "$HOME/x", "./$D", "-- $D", "x$UID"),
    *("$'\\xc3\\xa9'", "٣>/dev/null", "{xé}>/dev/null", "2>/dev/null", "$'a\\u00a0b'", "$COLUMNS"),
)
SETTINGS = (
    *("set +B", "set -f", "set -e", "set -a", "IFS=/", "IFS=", "shopt -s nullglob", "set -- a b"),
    *("UID=1", ": $((1/0))", ": ${x:1/0}", "a[1/0]=1", ": $((i=1))", "unset D", "readonly D"),
    *("shopt -s failglob", ": *zz", "set -u", "declare -u D", "declare -i E", "local D", "umask 0"),
)


class Miss(msgspec.Struct, frozen=True):
    """A file that a script changed although it was not judged."""

    script: str
    path: str
    seed: str


class Figures(msgspec.Struct):
    cases: int = 0
    covered: int = 0
    """Scripts that the rule for writing covers."""
    changed: int = 0
    """Files that these changed."""
    misses: list[Miss] = []


class Generator:
    """Makes scripts; the same seed makes the same one."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)

    def script(self) -> str:
        lines = [self.list(2) for _ in range(self.chance.randint(1, 4))]
        return self.pick(("\n", "; ", "\n")).join(lines)

    def pick(self, given: tuple[str, ...]) -> str:
        return self.chance.choice(given)

    def list(self, depth: int) -> str:
        commands = [self.command(depth) for _ in range(self.chance.choice((1, 1, 2, 3)))]
        text = commands[0]
        for command in commands[1:]:
            text += self.pick((" && ", " && ", " || ", "; ", " | ", " & ")) + command
        return text

    def command(self, depth: int) -> str:
        makers: list[Callable[[int], str]] = [
            *(self._touch, self._touch, self._touch, self._move, self._move, self._assign),
            *(self._assign, self._set),
        ]
        if depth:
            makers += [self._compound, self._carried]
        return self.chance.choice(makers)(depth - 1)

    def _touch(self, _: int) -> str:
        before = f"{self.pick(NAMES)}={self.pick(VALUES)} " if self.chance.random() < 0.1 else ""
        if self.chance.random() < 0.25:
            return f"{self.pick(('echo', ':', 'cat'))} {self.pick(('>', '>>', '&>'))} {self._one()}"
        words = " ".join(self.pick(WORDS) for _ in range(self.chance.randint(1, 2)))
        return f"{before}touch {words}"

    def _one(self) -> str:
        """Return a word that names a file to write by redirection."""
        return self.pick(
            tuple(word for word in WORDS if not word.startswith("--") and ">" not in word)
        )

    def _move(self, _: int) -> str:
        how = (
            "cd",
            "cd",
            "cd",
            "cd --",
            "cd -P",
            "pushd",
            "! cd",
            "command cd",
            "env cd",
            "time cd",
        )
        text = f"{self.pick(how)} {self.pick((*FOLDERS, '$D', '~+', '$OLDPWD', '-'))}"
        return self.pick((text, text, text, text, "popd", "pushd", f"{{cd,{self.pick(FOLDERS)}}}"))

    def _assign(self, _: int) -> str:
        name, value = self.pick(NAMES), self.pick(VALUES)
        how = (
            *(f"{name}={value}", f"{name}={value}", f"{name}={value}", f"export {name}={value}"),
            *(f"read {name} <<< {value}", f"printf -v {name} %s {value}", f"{name}+={value}"),
            *(f": ${{{name}:={value}}}", f"declare {name}={value}", f"{name}=({value})"),
            *(f"{{read,{name}}} <<< {value}", f"{name}=$(cat <<'X'\n{value}\nX\n)"),
        )
        return self.pick(how)

    def _set(self, _: int) -> str:
        return self.pick((*SETTINGS, "f", "true", "false", ":", "break", "continue", "return"))

    def _compound(self, depth: int) -> str:
        body, other = self.list(depth), self.list(depth)
        shapes = (
            *(
                f"( {body} )",
                f"{{ {body}; }}",
                f"f() {{ {body}; }}",
                f"f() {{ {body}; }}; {other}; f",
            ),
            *(
                f"for D in src lib; do {body}; done",
                f"for E in a {self.pick(VALUES)}; do {body}; done",
            ),
            f"for i in 1 2 3; do {body}; {other}; done",
            f"while read D; do {body}; done <<< {self.pick(VALUES)}",
            f"if {body}; then {other}; fi",
            f"until {body}; do {other}; break; done",
            f"case $D in src) {body} ;; *) {other} ;; esac",
            f"! {{ {body}; }} && {other}",
        )
        return self.pick(shapes)

    def _carried(self, depth: int) -> str:
        body = self.list(depth)
        if "'" in body or "<<" in body:
            return f"time {body}"
        shapes = (
            *(f"eval '{body}'", f"bash -c '{body}'", f"trap '{body}' EXIT", f"trap '{body}' DEBUG"),
            *(f"env -C {self.pick(FOLDERS)} bash -c '{body}'", f"nice bash -c '{body}'"),
            *(f"bash +B -c '{body}'", f"env D={self.pick(VALUES)} bash -c '{body}'"),
        )
        return self.pick(shapes)


class World:
    """A workspace with folders and links, and programs that do no harm."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home, self.bin = (folder / "x/work", folder / "home", folder / "bin")
        for path in (self.work / "a/b/c", self.home, self.bin, folder / "elsewhere"):
            path.mkdir(parents=True)
        for name in ("src", "lib", ".git", "D", "~"):
            (self.work / name).mkdir()
        (self.work / "link").symlink_to("a/b/c")
        (self.bin / "touch").write_text(STUB)
        (self.bin / "touch").chmod(0o755)
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        self.log = folder / "log"
        self.env = {"PATH": str(self.bin), "HOME": str(self.home), "STUB_LOG": str(self.log)}
        self.policy = Policy(
            cwd=str(self.work), roots=(str(self.work),), home=str(self.home), allow=rules("write")
        )

    def run(self, script: str, locale: str) -> list[str]:
        """Return the files that a script would have changed."""
        self.log.write_bytes(b"")
        process = subprocess.Popen(
            [str(self.bin / "bash"), "-c", script],
            cwd=self.work,
            env={**self.env, "LC_ALL": locale},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        noted = [os.fsdecode(path) for path in self.log.read_bytes().split(b"\0")[:-1]]
        return [*noted, *self._take_written()]

    def _take_written(self) -> list[str]:
        """Remove the files that redirections made; return them."""
        tops = (self.work.parent, self.home, self.work.parent.parent / "elsewhere")
        found = [path for top in tops for path in top.rglob("*") if path.is_file()]
        for path in found:
            path.unlink()
        return list(map(str, found))


def fuzz(cases: int, seed: str = "0") -> Figures:
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="place-fuzz-") as folder:
        world = World(Path(os.path.realpath(folder)))
        for number in range(cases):
            script = Generator(f"{seed}:{number}").script()
            figures.cases += 1
            analysis = analyse(script, str(world.work), str(world.home))
            if judge_analysis(analysis, world.policy, script).verdict != "allow":
                continue
            named = [path for path in (*analysis.touched, *analysis.targets) if path]
            if not named:
                continue
            figures.covered += 1
            judged = set(map(os.path.realpath, named))
            for path in world.run(script, ("C", "C.UTF-8")[number % 2]):
                figures.changed += 1
                if os.path.realpath(path) not in judged:
                    figures.misses.append(Miss(script, path, f"{seed}:{number}"))
    return figures


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    result = fuzz(wanted, sys.argv[2] if len(sys.argv) > 2 else "0")
    for one in result.misses[:40]:
        print(f"{one.seed}: {one.path} is changed by\n{one.script}\n")
    print(
        f"{result.cases} cases, {result.covered} covered by the rule, {result.changed} files, "
        f"{len(result.misses)} not judged"
    )
    sys.exit(bool(result.misses))
