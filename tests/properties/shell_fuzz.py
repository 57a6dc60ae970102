"""Random shell commands, read by the analysis and run by a real bash: does it find what starts?

The programs named in the commands are stubs that note their names. Run as a program with the
number of cases and, if wanted, a seed: `python tests/properties/shell_fuzz.py 20000`.
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

from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.analysis import Analysis

STUBS = ("alpha", "beta", "gamma", "delta", "omega")
REAL = (
    *(
        "bash",
        "sh",
        "env",
        "timeout",
        "nice",
        "nohup",
        "xargs",
        "find",
        "sed",
        "awk",
        "cat",
        "sort",
    ),
    *("head", "tail", "stdbuf", "setsid", "ionice", "tr", "uniq", "grep", "wc", "printf", "tee"),
    "date",
)
STUB = '#!/bin/dash\necho "${0##*/}" >> "$STUB_LOG"\necho 1\n'
NOISE = ["$\\\n", "'", '"', "\\", "\n", "$(", ")", "`", ";", ";;", "#", "\r", "{", "}", "&", "|", "<", ">", " ", "$", "((", "\\\n", "!", "[["]  # fmt: skip


class Miss(msgspec.Struct, frozen=True):
    """A program that was started although the analysis had not said so."""

    command: str
    started: str
    seed: str


class Figures(msgspec.Struct):
    """What a run of the fuzz came to."""

    cases: int = 0
    started: int = 0
    certain: int = 0
    """Cases that the analysis claims to know completely."""
    misses: list[Miss] = []


class Generator:
    """Makes commands from a grammar, with a bias to what is read wrongly."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def command(self) -> str:
        text = self._list(3)
        if self._random.random() < 0.25:
            text = self._disturb(text)
        return text

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _disturb(self, text: str) -> str:
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randint(0, len(text))
            text = text[:at] + self._random.choice(NOISE) + text[at:]
        return text

    def _name(self) -> str:
        name = self._random.choice(STUBS)
        if self._random.random() < 0.55:
            return name
        cut = self._random.randint(1, len(name) - 1)
        a, b = name[:cut], name[cut:]
        return self._pick(
            f"{a}''{b}", f"'{a}'{b}", f'{a}"{b}"', f"\\{name}", f"{a}\\{b}", f"$'{name}'",
            f"$'\\x{ord(name[0]):02x}'{name[1:]}", f"$'\\{ord(name[0]):o}'{name[1:]}", f'"{name}"',
            f"{a}\\\n{b}", f"{{{name},x}}", f"{a}{{{b},y}}", f"{a}$empty{b}", f"$(echo {name})",
            f"`echo {name}`", f"${{unset:-{name}}}", f"$STUB_DIR/{name}", f"{a}$'{b}'", f'$"{name}"',
            f"{a}$(){b}", f"{a}${{unset}}{b}", f"{a[:1]}?{name[2:]}", f"\n{name}", f"{name}\\\n",
        )  # fmt: skip

    def _word(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.5:
            return self._pick(
                "x", "-n", "'a b'", '"$x"', "*.txt", "a=b", "1", "{a,b}", "~", "#c", "a#b", "''"
            )
        inner = self._list(depth - 1)
        quoted = inner.replace("'", "'\\''")
        return self._pick(
            f"$({inner})", f'"$({inner})"', f"`{self._simple(0)}`", f'"`{self._simple(0)}`"',
            f"${{x:-$({inner})}}", f'"${{x:-$({inner})}}"', f"\"${{x:-'$({inner})'}}\"",
            f"${{x:-`{self._simple(0)}`}}", f"<({inner})", f">({inner})", f"'{quoted}'",
            f"$(( $({inner}) + 1 ))", f"${{x/a/$({inner})}}", f"${{x:$({inner})}}", f"a$({inner})b",
            f"${{a[$({inner})]}}", f'"a${{x:-"$({inner})"}}"', f"${{x#$({inner})}}", f"$(({self._name()}))",
        )  # fmt: skip

    def _simple(self, depth: int) -> str:
        words = [self._name()] + [self._word(depth) for _ in range(self._random.randint(0, 2))]
        if self._random.random() < 0.15:
            words.insert(0, self._pick("y=1", f"y=$({self._simple(0)})", "y='a b'", "y[0]=1"))
        if self._random.random() < 0.2:
            target = self._pick("out.txt", "/dev/null", "'o p'", "$PWD/o")
            words.insert(
                self._random.randint(0, len(words)),
                self._pick(">", "2>", ">>", "&>", "2>&1 >") + target,
            )
        return " ".join(words)

    def _list(self, depth: int) -> str:
        count = self._random.choice((1, 1, 1, 2, 3))
        text = self._statement(depth)
        for _ in range(count - 1):
            text += self._pick(
                " ; ", " && ", " || ", " | ", "\n", " & ", ";", "&&", "|", " |& "
            ) + self._statement(depth)
        return text

    def _statement(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self._simple(depth)
        chosen: Callable[[int], str] = self._random.choice(
            (self._compound, self._carried, self._oddity, self._document, self._function)
        )
        return chosen(depth - 1)

    def _compound(self, depth: int) -> str:
        a, b = self._list(depth), self._list(depth)
        return self._pick(
            f"({a})", f"{{ {a}; }}", f"if {a}; then {b}; fi", f"for i in 1 2; do {a}; done",
            f"case x in x) {a};; *) {b};; esac", f"f() {{ {a}; }}; f", f"function g {{ {a}; }}; g",
            f"! {a}", f"time {a}", f"time -p {a}", f"while {a}; do {b}; break; done", f"( {a} ) > o",
            f"for ((i=0;i<1;i++)); do {a}; done", f"select i in 1; do {a}; break; done </dev/null",
            f"[[ -n $({a}) ]] && {b}", f"[ -n \"$({a})\" ] && {b}", f"until {a}; do break; done",
            f"if {a}; then :; elif {b}; then :; else {a}; fi", f"{{ {a}; }} 2>&1 | {{ {b}; }}", f"coproc {a}",
            f"coproc N {{ {a}; }}; wait",
        )  # fmt: skip

    def _carried(self, depth: int) -> str:
        a, s = self._list(depth), self._simple(0)
        quoted = "'" + a.replace("'", "'\\''") + "'"
        return self._pick(
            f"bash -c {quoted}", f"sh -c {quoted}", f"eval {quoted}", f"env {s}", f"env y=1 {s}",
            f"timeout 5 {s}", f"nice -n 1 {s}", f"command {s}", f"nohup {s}", f"stdbuf -oL {s}",
            f"(exec {s})", f"trap {quoted} EXIT", f"echo x | xargs {s}", f"echo x | xargs -I{{}} {s} {{}}",
            f"find . -maxdepth 0 -exec {s} {{}} \\;", f"find . -maxdepth 0 -exec {s} {{}} +",
            f"bash -ec {quoted}", f"env -i PATH=$PATH STUB_LOG=$STUB_LOG {s}", f"setsid -w {s}", f"bash <<< {quoted}",
            f"echo {quoted} | bash", f". <(echo {quoted})", f"env -u y -- {s}", f"timeout -s KILL 5 nice {s}",
            f"bash -c 'eval \"$1\"' _ {quoted}", f"xargs -n1 {s} < /dev/null", f"builtin eval {quoted}",
        )  # fmt: skip

    def _oddity(self, depth: int) -> str:
        s = self._random.choice(STUBS)
        return self._pick(
            f"printf -v 'a[$({s})]' x", f"[[ -v 'a[$({s})]' ]]", f"test -v 'a[$({s})]'", f"z='a[$({s})]'; ((z))",
            f"z='a[$({s})]'; echo $((z+1))", f"let 'a[$({s})]=1'", f"z='$({s})'; echo ${{z@P}}",
            f"declare 'a[$({s})]=1'", f"unset 'a[$({s})]'", f"read 'a[$({s})]' <<< 1", f"a[$({s})]=1",
            f"a=($({s}) b)", f"export z=$({s})", f"mapfile -C {s} -c 1 q <<< x", f"z={s}; $z", f"z={s}; eval $z",
            f"z=({s} x); ${{z[0]}}", f"awk 'BEGIN{{system(\"{s}\")}}'", f"echo x | sed '1e {s}'",
            f"echo x | awk '{{print | \"{s}\"}}'", f"z='a[$({s})]'; [[ z -eq 0 ]]", f"z={s}; w=z; ${{!w}}",
            f"set -x; PS4='$({s})'; :", f"alias q={s}; q", f"shopt -s expand_aliases; alias q={s}\nq",
            f"hash -p $STUB_DIR/{s} cat; cat", f"PATH=$STUB_DIR:$PATH {s}", f"z=$(echo 'a[$({s})]'); echo $((z))",
            f"readonly z=$({s})", f"echo $[ $({s}) ]", f"local z=$({s})", f"z[$({s})]+=2", f"echo ${{z[$({s})]:-1}}",
            f"compgen -W '$({s})'", f'echo "$\\\n({s})"', f"echo $\\\n({s})", f'echo "${{x:-$\\\n({s})}}"', f"cat <\\\n({s})", f"z='$({s})'; echo ${{z\\\n@P}}", f"true &\\\n& {s}", f"trap {s} DEBUG; :", f"echo {{a,$({s})}}", f": ${{z:=$({s})}}", f"(( $({s}) ))",
            f"for z in $({s}); do :; done", f"case $({s}) in 1) :;; esac", f"case 1 in $({s})) :;; esac", f"'' || {s}",
            f": && {s}", f"echo a; #{s}\n{s}", f"{s} ;; {s}", f"true &>/dev/null {s}", f"if :\nthen {s}\nfi", f"ls;{s}",
            f">o {s}", f"2>&1 {s}", f"<o {s} || {s}", f"!\\\n {s}", f"time\\\n {s}", f"{{\\\n {s}; }}", f"i\\\nf :; then {s}; fi",
            f"read z <<< 'a[$({s})]'; [[ $z -eq 1 ]]", f"read z <<< 'a[$({s})]'; [[ z -gt 1 ]]", f"read z <<< 'a[$({s})]'; let z",
            f"read z <<< '$({s})'; test -v \"a[$z]\"", f"read z <<< '$({s})'; unset \"a[$z]\"", f"z='$({s})'; printf -v \"a[$z]\" 1",
            f"echo $(( $(date '+a[$({s})]') ))", f"z='$({s})'; echo ${{z[a[0]]@P}}", f"set -k; echo PATH=x; {s}",
            f"z=$(cat <<< 'a[$({s})]'); [[ $z -ne 0 ]]", f"z=${{y:-a[\\$({s})]}}; (( z ))", f"declare -A m; m['$({s})']=1; echo ${{m[x]}}",
        )  # fmt: skip

    def _function(self, depth: int) -> str:
        """A function with the name of a program: it may not be there, or not be called."""
        s, a = self._random.choice(STUBS), self._simple(0)
        f = self._pick(
            f"{s}() {{ :; }}", f"function {s} {{ :; }}", f"{s}() ( : )", f"{s}()\n{{ :; }}"
        )
        return self._pick(
            f"{f}; {s}", f"{s}; {f}", f"({f}); {s}", f"{{ {f}; }}; {s}", f"{f} & {s}", f"{f} | cat; {s}", f"false && {f}; {s}",
            f"if false; then {f}; fi; {s}", f"{f}; command {s}", f"{f}; env {s}", f"{f}; unset -f {s}; {s}", f"{f}; unset {s}; {s}",
            f"{f}; bash -c {s}", f"bash -c '{s}() {{ :; }}'; {s}", f"{f}; eval {s}", f"{f}; trap {s} EXIT", f"{f}; (exec {s})",
            f"g() {{ {f}; }}; {s}", f"g() {{ {s}; }}; g; {f}", f"g() {{ {s}; }}; {f}; g", f"{f}; x=$({s})", f"$({f}); {s}",
            f"{f}; eval 'unset -f {s}'; {s}", f"z={s}; {f}; unset -f $z; {s}", f"{f}; {s} | {a}", f"{f}; for i in 1 2; do {s}; unset -f {s}; done",
            f"{{ {f}; }} | cat; {s}", f"{f}; echo x | xargs {s}", f"{f}; $STUB_DIR/{s}", f"! {f}; {s}", f"time {f}; {s}", f"{f} > o; {s}",
            f"cat <({f}); {s}", f"{f} || :; {s}", f"true || {f}; {s}", f"case 1 in 2) {f};; esac; {s}", f"while false; do {f}; done; {s}",
        )  # fmt: skip

    def _document(self, depth: int) -> str:
        a, s = self._list(depth).replace("\n", ";"), self._random.choice(STUBS)
        return self._pick(
            f"cat <<EOF\n$({a})\nEOF\n", f"cat <<'EOF'\n$({a})\nEOF\n", f"cat <<-EOF\n\t`{s}`\n\tEOF\n",
            f"cat <<EOF\n${{x:-$({a})}}\nEOF\n", f"bash <<EOF\n{s}\nEOF\n", f"bash <<'EOF'\n{s}\nEOF\n",
            f"cat <<A <<B\n$({s})\nA\n$({s})\nB\n", f"cat <<E\\OF\n$({s})\nEOF\n", f'cat <<"EOF" ; {s}\n$({s})\nEOF\n',
            f"cat <<EOF\n  EOF\n$({s})\nEOF\n{s}", f"cat <<EOF | bash\n{s}\nEOF\n", f"cat <<< $({a})", f"cat <<< '$({s})'",
            f"$(cat <<EOF\n{s}\nEOF\n)", f"cat <<EOF\n\\$({s})\nEOF\n", f'cat <<EOF\n"$({s})"\nEOF\n',
            f"cat <<EOF\n'$({s})'\nEOF\n", f"cat <<EOF && {s}\ntext\nEOF\n",
            f"cat <<EOF\n$\\\n({s})\nEOF\n", f"cat <<EOF\nEO\\\nF\n{s}\nEOF\n", f"cat <<EOF\nx\\\nEOF\n{s}\nEOF\n",
        )  # fmt: skip


class Ground:
    """A throw-away directory with stubs on its path, in which commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stubs = folder / "bin"
        self.work = folder / "work"
        self._runs = 0
        self.stubs.mkdir()
        self.work.mkdir()
        for name in STUBS:
            stub = self.stubs / name
            stub.write_text(STUB)
            stub.chmod(0o755)
        for name in REAL:
            if found := shutil.which(name):
                (self.stubs / name).symlink_to(found)

    def run(self, command: str) -> set[str]:
        """The stubs that a command starts."""
        # A file for each run: what one leaves behind must not be counted for the next.
        self._runs += 1
        log = self.folder / f"started-{self._runs}"
        log.write_text("")
        env = {
            "PATH": str(self.stubs),
            "STUB_DIR": str(self.stubs),
            "STUB_LOG": str(log),
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
        }
        process = subprocess.Popen(
            ["/bin/bash", "-c", command.replace("\0", "")],
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(3)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        for left in self.work.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        return set(log.read_text().split())


def certain(analysis: Analysis) -> bool:
    """Whether the analysis claims to name everything that starts."""
    return analysis.is_known and not analysis.hazards


def fuzz(cases: int, seed: str = "0") -> Figures:
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="shell-fuzz-") as folder:
        ground = Ground(Path(folder))
        for number in range(cases):
            check(ground, f"{seed}:{number}", figures)
    return figures


def check(ground: Ground, seed: str, figures: Figures) -> None:
    command = Generator(seed).command()
    analysis = analyse(command, str(ground.work), str(ground.folder))
    figures.cases += 1
    if not certain(analysis):
        return
    figures.certain += 1
    started = ground.run(command)
    figures.started += len(started)
    # What only reads would run without being asked about; the stubs do not count as such.
    named = {found.base for found in analysis.commands if not found.read_only}
    for name in sorted(started - named):
        figures.misses.append(Miss(command, name, seed))


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    result = fuzz(wanted, sys.argv[2] if len(sys.argv) > 2 else "0")
    for miss in result.misses[:20]:
        print(f"{miss.seed}: {miss.started} was not found in {miss.command!r}")
    print(
        f"{result.cases} cases, {result.certain} certain, {result.started} programs started, "
        f"{len(result.misses)} missed"
    )
    sys.exit(bool(result.misses))
