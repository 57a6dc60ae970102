"""Commands behind the fence, with every backend of this machine: they can change nothing."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitkit import git, make_repository
from toolkit import Bench, open_bench, processes_with
from trimtab.contracts.workspace import Command
from trimtab.workspace.sandbox import seatbelt
from trimtab.workspace.sandbox.fence import Fence, FenceBackend, may_limit
from trimtab.workspace.sandbox.fence_detection import detect_fence
from trimtab.workspace.sandbox.fence_policy import (
    FencePolicy,
    build_fence_policy,
    list_except,
)
from trimtab.workspace.sandbox.fence_watch import Totals

BACKENDS = [
    pytest.param(name, marks=pytest.mark.needs(name, "git")) for name in ("landlock", "bubblewrap")
]


class Fenced:
    """A workspace whose commands all run behind the fence."""

    def __init__(self, bench: Bench, backend: FenceBackend, outside: Path) -> None:
        self.bench = bench
        self.root = bench.root
        self.backend = backend
        self.outside = outside
        outside.mkdir()
        (outside / "secret").write_text("s3cret\n")
        self.use()

    def use(self, totals: Totals | None = None, **changes: object) -> None:
        given = {
            "cwd": str(self.root),
            "readable": (str(self.root),),
            "untrusted": (str(self.root),),
            "denied": (),
            "env": self.bench.workspace.child_env,
            "temp": f"{self.bench.files}/temp",
            **changes,
        }
        policy = build_fence_policy(**given)  # type: ignore[arg-type]
        program = shutil.which("bwrap") or ""
        self.bench.workspace.shells.fence = Fence(self.backend, policy, program, totals=totals)

    async def run(self, text: str, wait: float = 50) -> str:
        state = await self.bench.workspace.shells.execute(
            Command(text=text, fenced=True), wait=wait, limit=100_000
        )
        assert state.exit_code is not None, text
        return f"{state.output.decode()}[{state.exit_code}]"


@pytest.fixture
async def fenced(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Fenced]:
    (tmp_path / "in").mkdir()
    async with open_bench(tmp_path / "in") as bench:
        make_repository(bench.root)
        bench.write("known.txt", "known\n")
        bench.write("program", "#!/bin/sh\necho executed\n")
        (bench.root / "program").chmod(0o755)
        git(bench.root, "add", ".")
        git(bench.root, "commit", "-q", "-m", "one")
        yield Fenced(bench, request.param, tmp_path / "out")


SHARED_OBJECTS = (30, 65, 69, 70, 220, 242) if os.uname().machine == "x86_64" else ()
"""shmat, semop, msgsnd, msgrcv, semtimedop and mq_timedsend."""

every_backend = pytest.mark.parametrize("fenced", BACKENDS, indirect=True)


def shape(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything about the files of a folder that a command could change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, about.st_uid, content)
    return found


@every_backend
async def test_a_fenced_command_reads_the_workspace_and_the_system(fenced: Fenced) -> None:
    text = await fenced.run("cat known.txt; git log --format=%s; git status --short; uname -s")
    assert text.startswith("known\none\nLinux\n")
    assert text.endswith("[0]")


WRITES = {
    "create": "echo x > made",
    "append": "echo x >> known.txt",
    "truncate": ": > known.txt",
    "truncate without writing": "python3 -c 'import os; os.truncate(\"known.txt\", 0)'",
    "truncate on reading": (
        "python3 -c 'import os; os.open(\"known.txt\", os.O_RDONLY | os.O_TRUNC)'"
    ),
    "touch": "touch -d 2001-01-01 known.txt",
    "mode": "chmod 777 known.txt",
    "owner": "chown nobody known.txt",
    "remove": "rm -f known.txt",
    "move": "mv known.txt made",
    "folder": "mkdir made",
    "link": "ln -s /etc made; ln known.txt made2",
    "pipe": "mkfifo made",
    "attribute": "setfattr -n user.x -v y known.txt; chattr +d known.txt",
    "git": "git add -A; git commit --allow-empty -q -m two; git config a.b c; git gc -q",
    "python": 'python3 -c \'open("made", "w")\'',
    "outside": "echo x > {out}/made; echo x > {out}/secret",
    "shared memory": "echo x > /dev/shm/trimtab-fence; echo x > /tmp/trimtab-fence",
    "session": "echo x > {files}/made",
}


@every_backend
@pytest.mark.parametrize("name", WRITES)
async def test_a_fenced_command_changes_no_file(fenced: Fenced, name: str) -> None:
    before = shape(fenced.root), shape(fenced.outside)
    await fenced.run(WRITES[name].format(files=fenced.bench.files, out=fenced.outside))
    assert (shape(fenced.root), shape(fenced.outside)) == before
    assert not os.path.exists("/dev/shm/trimtab-fence")
    assert not os.path.exists("/tmp/trimtab-fence")
    assert os.listdir(fenced.bench.files) == ["temp"]


@every_backend
@pytest.mark.parametrize(
    "call",
    [
        'os.memfd_create("program")',
        'fcntl.ioctl(os.open("known.txt", os.O_RDONLY), 0x40087602, b"12345678")',  # its version
        'fcntl.ioctl(os.open("known.txt", os.O_RDONLY), 0x40806685, bytes(128))',  # verity
        'fcntl.ioctl(os.open(".", os.O_RDONLY), 0x5000940E, bytes(1024))',  # a new subvolume
        'fcntl.fcntl(os.open("known.txt", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_UNLCK)',
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "os.setpriority(os.PRIO_USER, 0, 0)",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (9, 9))",
        *(f"call({number})" for number in SHARED_OBJECTS),
    ],
)
async def test_calls_that_the_file_system_does_not_check_are_refused(
    fenced: Fenced, call: str
) -> None:
    (fenced.root / "call.py").write_text(
        "import ctypes, fcntl, os, resource, socket\n"
        "def call(number):\n"
        "    if ctypes.CDLL(None, use_errno=True).syscall(number, 3, 0, 0, 0, 0) < 0:\n"
        "        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"
        f"{call}\n"
    )
    text = await fenced.run("python3 - < call.py")
    assert "PermissionError: [Errno 1] Operation not permitted" in text


@every_backend
async def test_what_programs_need_of_such_calls_is_left_to_them(fenced: Fenced) -> None:
    (fenced.root / "call.py").write_text(
        "import fcntl, os, resource, socket, struct\n"
        "one, two = socket.socketpair()\n"
        "one.send(b'x')\n"
        "print(two.recv(1))\n"
        "print(socket.if_nameindex() != [])\n"
        "print(struct.unpack('i', fcntl.ioctl(os.open('.', 0), 2, bytes(4)))[0] > 0)\n"
        "resource.getrlimit(resource.RLIMIT_RTTIME)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))\n"
        "fcntl.flock(os.open('known.txt', 0), fcntl.LOCK_SH)\n"
    )
    assert await fenced.run("python3 - < call.py 2>/dev/null") == "b'x'\nTrue\nTrue\n[0]"


@every_backend
async def test_a_command_cannot_hide_from_its_end(fenced: Fenced) -> None:
    (fenced.root / "hide.py").write_text(
        "import os, resource, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    try:\n"
        "        resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1))\n"
        "    except (OSError, ValueError):\n"
        "        pass\n"
        "    for number in range(3):\n"
        "        os.close(number)\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(60)\n"
    )
    await fenced.run("python3 - < hide.py")
    assert not processes_with(fenced.bench.session_id)


@every_backend
async def test_a_temp_folder_is_private_to_one_command(fenced: Fenced) -> None:
    text = await fenced.run('echo kept > "$TMPDIR/x"; cat "$TMPDIR/x"; sort known.txt <<< a')
    assert text == "kept\nknown\n[0]"
    assert os.listdir(f"{fenced.bench.files}/temp") == []


@every_backend
@pytest.mark.parametrize("name", ["hostname", "core_pattern"])
async def test_a_fenced_command_changes_no_setting_of_the_kernel(fenced: Fenced, name: str) -> None:
    path = Path("/proc/sys/kernel", name)
    before = path.read_bytes()
    text = await fenced.run(f"cat {path} | tee {path} > /dev/null")
    assert "Permission denied" in text or "Read-only file system" in text
    assert path.read_bytes() == before


@every_backend
async def test_what_is_printed_of_the_network_is_that_of_the_machine(fenced: Fenced) -> None:
    assert await fenced.run("cat /proc/net/dev | wc -l") == (
        f"{len(Path('/proc/net/dev').read_text().splitlines())}\n[0]"
    )


@pytest.mark.parametrize("fenced", BACKENDS[:1], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        "./program",
        "$PWD/program",
        "PATH=$PWD:$PATH program",
        "env ./program",
        'cp program "$TMPDIR/p"; "$TMPDIR/p"',
    ],
)
async def test_a_fenced_command_executes_no_program_of_the_workspace(
    fenced: Fenced, command: str
) -> None:
    text = await fenced.run(command)
    assert "executed" not in text
    assert "Permission denied" in text


@every_backend
@pytest.mark.parametrize(
    "command",
    [
        "cat {out}/secret",
        "cat link",
        "cat *",
        "grep -rs s3cret {out}",
        "cat /proc/{pid}/environ; cat /proc/{pid}/root/etc/shadow",
        "cat /etc/shadow",
        "git --no-pager diff --no-index /dev/null {out}/secret",
    ],
)
async def test_a_fenced_command_reads_nothing_outside(fenced: Fenced, command: str) -> None:
    os.symlink(fenced.outside / "secret", fenced.root / "link")
    text = await fenced.run(command.format(pid=os.getpid(), out=fenced.outside))
    assert "s3cret" not in text
    assert "PATH=" not in text
    assert "root:" not in text


@every_backend
async def test_denied_files_cannot_be_read_but_new_ones_can(fenced: Fenced) -> None:
    (fenced.root / ".env").write_text("s3cret\n")
    fenced.use(denied=(str(fenced.root / ".env"),))
    assert "s3cret" not in await fenced.run("cat .env; grep -r s3cret .; cat ./.env; cat .e*")
    assert "known.txt" in await fenced.run("ls; cat known.txt")
    (fenced.root / "later.txt").write_text("later\n")
    assert "later\n" in await fenced.run("cat later.txt")


@every_backend
async def test_no_device_is_opened_even_if_everything_may_be_read(fenced: Fenced) -> None:
    fenced.use(readable=("/",))
    text = await fenced.run(
        f"cat {fenced.outside}/secret; cat /dev/ptmx; cat /dev/kmsg; exec 3< /dev/ptmx"
    )
    assert text.startswith("s3cret\n")
    assert text.count("/dev/ptmx: ") == 2
    assert text.count("/dev/kmsg: ") == 1
    assert "Input/output error" not in text


CONNECT = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'"


@every_backend
async def test_a_fenced_command_connects_to_nothing(fenced: Fenced) -> None:
    path = str(fenced.root / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        server.settimeout(0)
        local.bind(path)
        local.listen()
        local.settimeout(0)
        port = server.getsockname()[1]
        await fenced.run(CONNECT.format(port=port))
        await fenced.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}")
        await fenced.run(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'"
        )
        with pytest.raises(BlockingIOError):
            server.accept()
        with pytest.raises(BlockingIOError):
            local.accept()


@every_backend
async def test_a_fenced_command_sends_no_datagram(fenced: Fenced) -> None:
    (fenced.root / "send.py").write_text(
        "import socket, sys\n"
        "for name in ('socket', bytes(1) + b'trimtab-fence'):\n"
        "    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "        try:\n"
        "            socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b'x', name)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    paths = [str(fenced.root / "socket"), "\0trimtab-fence"]
    receivers = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in paths]
    for receiver, path in zip(receivers, paths, strict=True):
        receiver.bind(path)
        receiver.settimeout(0)
    await fenced.run("python3 - < send.py")
    for receiver in receivers:
        with receiver, pytest.raises(BlockingIOError):
            receiver.recv(1)


@every_backend
async def test_a_fenced_command_signals_nobody_else(fenced: Fenced) -> None:
    other = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        pid = other.pid
        await fenced.run(f"kill -9 {pid}; renice 5 -p {pid}; prlimit --pid {pid} --nofile=5:5")
        assert other.returncode is None
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
        text = await fenced.run("sleep 60 & kill $!; wait $!; echo ended $?; timeout 0.1 sleep 9")
        assert text.endswith("ended 143\n[124]")
    finally:
        other.kill()
        await other.wait()


@pytest.mark.parametrize("fenced", BACKENDS[:1], indirect=True)
@pytest.mark.parametrize("version", [1, 2, 3, 5])
async def test_what_older_kernels_do_not_check_is_refused_for_every_file(
    fenced: Fenced, version: int
) -> None:
    shells = fenced.bench.workspace.shells
    assert shells.fence is not None
    shells.fence = Fence("landlock", shells.fence.policy, version=version)
    before = shape(fenced.root)
    for text in WRITES.values():
        await fenced.run(text.format(files=fenced.bench.files, out=fenced.outside))
    assert shape(fenced.root) == before
    assert await fenced.run(f"kill -0 {os.getpid()} 2>/dev/null") == "[1]"
    assert await fenced.run('cat known.txt; echo x >> "$TMPDIR/x"') == "known\n[0]"


@every_backend
async def test_a_fork_bomb_is_ended(fenced: Fenced) -> None:
    # Bounded at a thousand processes, should the fence fail.
    bomb = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 20; }; f 9"
    async with asyncio.timeout(50):
        text = await fenced.run(bomb)
    assert "<stopped by the fence: it started more than 256 processes>" in text
    assert not processes_with(fenced.bench.session_id)


@every_backend
async def test_a_fork_bomb_is_ended_though_other_programs_end(fenced: Fenced) -> None:
    others = [await asyncio.create_subprocess_exec("sleep", "30") for _ in range(300)]
    bomb = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 20; }; f 7"
    command = asyncio.create_task(fenced.run(bomb))
    await asyncio.sleep(0.02)
    for other in others:
        other.kill()
    await asyncio.gather(*(other.wait() for other in others))
    assert "<stopped by the fence: it started more than 256 processes>" in await command


@every_backend
async def test_memory_and_files_are_limited(fenced: Fenced) -> None:
    text = await fenced.run("python3 -c 'x = bytearray(5 << 30)'; ulimit -c -f; ulimit -d 9999999")
    assert "MemoryError" in text
    text = await fenced.run('head -c 400M /dev/zero > "$TMPDIR/x"; stat -c %s "$TMPDIR/x"')
    assert "268435456" in text


ALLOCATE = """
import mmap, os
for _ in range(3):
    if os.fork() == 0:
        block = mmap.mmap(-1, 150 << 20{flags})
        for place in range(0, len(block), 4096):
            block[place] = 1
        signal.pause()
os.wait()
"""
HIDE = """
import os
for number in range(20):
    file = open(os.environ["TMPDIR"] + "/x", "wb")
    os.unlink(file.name)
    file.write(bytes(4 << 20))
    file.flush()
    os.dup(file.fileno())
signal.pause()
"""
TAKEN = {
    "private memory": (ALLOCATE.format(flags=", mmap.MAP_PRIVATE"), "200 MB of memory"),
    "shared memory": (ALLOCATE.format(flags=""), "200 MB of memory"),
    "open files that were removed": (HIDE, "32 MB or 500 files"),
    "many files": (
        "import os\nwhile True: open(os.environ['TMPDIR'] + '/' + os.urandom(8).hex(), 'w')",
        "32 MB or 500 files",
    ),
}


@every_backend
@pytest.mark.parametrize("what", TAKEN)
async def test_what_all_processes_take_together_is_limited(fenced: Fenced, what: str) -> None:
    script, reason = TAKEN[what]
    (fenced.root / "take.py").write_text(f"import signal\n{script}")
    fenced.use(totals=Totals(memory=200 << 20, temp=32 << 20, files=500))
    text = await fenced.run("timeout 40 python3 - < take.py")
    assert "<stopped by the fence: " in text
    assert f"more than {reason}>" in text
    assert not list(Path(fenced.bench.files, "temp").glob("*/*"))


@every_backend
async def test_the_kernel_ends_a_fenced_command_first_when_memory_runs_out(fenced: Fenced) -> None:
    read = "read score < /proc/self/oom_score_adj"
    await_score = f"for turn in {{1..500}}; do {read}; ((score)) && break; sleep 0.01; done"
    assert await fenced.run(f"{await_score}; echo $score; (cat /proc/self/oom_score_adj)") == (
        "1000\n1000\n[0]"
    )


@every_backend
async def test_what_processes_share_counts_once(fenced: Fenced) -> None:
    (fenced.root / "share.py").write_text(
        "import os, time\n"
        "block = bytearray(b'x') * (120 << 20)\n"
        "children = [os.fork() for _ in range(2)]\n"
        "if all(children):\n"
        "    time.sleep(0.3)\n"
        "else:\n"
        "    time.sleep(0.2)\n"
    )
    fenced.use(totals=Totals(memory=200 << 20))
    assert await fenced.run("python3 - < share.py 2>/dev/null") == "[0]"


@every_backend
async def test_the_temp_folder_of_another_command_cannot_be_changed(fenced: Fenced) -> None:
    temp = f"{fenced.bench.files}/temp"
    wait = "for turn in {{1..500}}; do [ -e {} ] && break; sleep 0.01; done"
    own = f'echo own > "$TMPDIR/x"; {wait.format("done")}; cat "$TMPDIR/x"'
    other = asyncio.create_task(fenced.run(own))
    there = wait.format(f"{temp}/*/x")
    await fenced.run(f"{there}; echo other | tee {temp}/*/x > {temp}/kept; rm -f {temp}/*/x")
    (fenced.root / "done").touch()
    assert await other == "own\n[0]"
    assert not list(Path(temp).glob("*/*"))


@every_backend
async def test_an_empty_temp_folder_serves_the_next_command(fenced: Fenced) -> None:
    first = await fenced.run(': > "$TMPDIR/x"; rm "$TMPDIR/x"; echo "$TMPDIR"')
    assert await fenced.run('echo "$TMPDIR"') == first
    assert await fenced.run(': > "$TMPDIR/x"; echo "$TMPDIR"') == first
    assert os.listdir(f"{fenced.bench.files}/temp") == []
    assert await fenced.run('echo "$TMPDIR"') != first


@every_backend
@pytest.mark.parametrize("change", ["touch x", "rmdir ../$OLD && ln -s / ../$OLD", "rmdir ../$OLD"])
async def test_a_temp_folder_that_was_changed_since_serves_nobody(
    fenced: Fenced, change: str
) -> None:
    first = (await fenced.run('echo "$TMPDIR"')).partition("\n")[0]
    assert os.listdir(first) == []
    await fenced.bench.bash(f"cd {first} && OLD={os.path.basename(first)} && {change}")
    assert await fenced.run('echo "$TMPDIR"; ls "$TMPDIR"; : > "$TMPDIR/y"') != f"{first}\n[0]"


@every_backend
async def test_a_temp_folder_nested_without_end_is_removed(fenced: Fenced) -> None:
    nest = "import os; os.chdir(os.environ['TMPDIR']); [(os.mkdir('d'), os.chdir('d')) for _ in %s]"
    command = f'python3 -c "{nest % "range(3000)"}" 2>/dev/null'
    assert await fenced.run(command) == "[0]"
    assert os.listdir(f"{fenced.bench.files}/temp") == []


@every_backend
async def test_a_fenced_command_has_a_terminal_of_its_own(fenced: Fenced) -> None:
    state = await fenced.bench.workspace.shells.execute(
        Command(text="tty; test -t 1 && echo terminal", fenced=True, terminal=True),
        wait=20,
        limit=10_000,
    )
    assert b"terminal" in state.output


@every_backend
async def test_start_up_files_and_functions_of_the_environment_are_left_out(
    fenced: Fenced,
) -> None:
    (fenced.root / "start").write_text("echo from start-up\n")
    state = await fenced.bench.workspace.shells.execute(
        Command(
            text="ls known.txt",
            fenced=True,
            env={"BASH_ENV": "./start", "BASH_FUNC_ls%%": "() { echo from function; }"},
        ),
        wait=20,
        limit=10_000,
    )
    assert state.output == b"known.txt\n"


def test_a_backend_is_tried_and_not_guessed() -> None:
    found = detect_fence(os.environ, ())
    assert found.backend is None
    assert found.reasons == ("the fence is switched off",)
    missing = detect_fence({"PATH": "/nowhere"}, ("bubblewrap", "seatbelt"))
    assert missing.backend is None
    assert missing.reasons == ("bubblewrap is not installed",)


def test_programs_of_the_workspace_and_of_other_people_are_not_trusted(tmp_path: Path) -> None:
    for name in ("tools/bin", "tools/lib", "work/bin", "open/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "open/bin").chmod(0o777)
    path = os.pathsep.join(f"{tmp_path}/{name}/bin" for name in ("tools", "work", "open"))
    policy = build_fence_policy(
        cwd=str(tmp_path / "work"),
        readable=(),
        untrusted=(str(tmp_path / "work"),),
        denied=(),
        env={"PATH": f"{path}:relative", "HOME": str(tmp_path)},
        temp="",
    )
    own = [folder for folder in policy.programs if folder.startswith(str(tmp_path))]
    assert own == [f"{tmp_path}/tools/bin", f"{tmp_path}/tools/lib"]


def test_git_settings_of_the_person_stay_readable_with_what_they_include(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[include]\n\tpath = ~/work/more\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/more").write_text('[core]\n\texcludesFile = "ignored"\n')
    (tmp_path / "work/ignored").write_text("*.o\n")
    policy = build_fence_policy(
        cwd="/", readable=(), untrusted=(), denied=(), env={"HOME": str(tmp_path)}, temp=""
    )
    assert f"{tmp_path}/work/more" in policy.readable
    assert f"{tmp_path}/work/ignored" in policy.readable
    assert str(tmp_path) not in policy.readable


def test_a_folder_is_replaced_by_its_other_entries(tmp_path: Path) -> None:
    for name in ("a", "b/c", "b/d"):
        (tmp_path / name).mkdir(parents=True)
    found, listed = list_except([str(tmp_path)], [f"{tmp_path}/b/c"])
    assert sorted(found) == [f"{tmp_path}/a", f"{tmp_path}/b/d"]
    assert listed == [str(tmp_path), f"{tmp_path}/b"]
    assert list_except([f"{tmp_path}/b/c"], [f"{tmp_path}/b"]) == ([], [])


def test_the_profile_for_macos_denies_what_the_policy_denies() -> None:
    policy = FencePolicy(
        readable=("/Users/a/work",),
        programs=("/opt/homebrew/bin",),
        untrusted=("/Users/a/work",),
        denied=('/Users/a/work/"secret"',),
    )
    lines = seatbelt.build_profile(policy, "/tmp/x", ()).split("\n")
    assert lines[1] == "(deny default)"
    assert '(deny process-exec (subpath "/Users/a/work"))' in lines
    assert lines[-1] == r'(deny file-read* file-write* (subpath "/Users/a/work/\"secret\""))'
    assert "(deny network*)" in lines


def test_the_profile_for_macos_keeps_devices_and_secrets_from_those_who_read_everything() -> None:
    policy = FencePolicy(readable=("/",), programs=(), untrusted=("/usr/local/work",))
    lines = seatbelt.build_profile(policy, "/tmp/x", ("/dev/ttys9",)).split("\n")
    everything = lines.index('(allow file-read* (subpath "/"))')
    secrets = next(line for line in lines if "/Library/Keychains" in line)
    terminals = next(line for line in lines if "tty|" in line)
    own = next(line for line in lines if '"/dev/ttys9"' in line)
    assert everything < lines.index(secrets) < lines.index(terminals) < lines.index(own)
    assert lines[lines.index('(deny process-exec (subpath "/usr/local/work"))') + 1] == (
        '(allow file-read* file-write* (subpath "/tmp/x"))'
    )
    whole = FencePolicy(readable=(), programs=(), untrusted=("/",))
    assert '(subpath "/usr")' in seatbelt.build_profile(whole, "/tmp/x", ()).split("deny proc")[1]


def test_that_bubblewrap_is_gone_is_left_to_its_start_to_say(tmp_path: Path) -> None:
    assert may_limit(str(tmp_path / "bwrap"))
