"""How far rules for groups reach: files that are run, and what containers get of the machine."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.bundles import find_bundle, find_everyday
from trimtab.permissions.decide_shell import decide_shell

DOCKER = msgspec.structs.replace(
    POLICY,
    allow=rules("shell(@docker)", "shell(@podman)", "shell(@docker-compose)", "shell(@compose)"),
)
CODE = msgspec.structs.replace(POLICY, allow=rules("shell(@code)", "shell(./)"))


def test_code_covers_programs_in_the_temp_directory_that_nobody_else_can_change(
    tmp_path: Path,
) -> None:
    policy = msgspec.structs.replace(CODE, roots=(*POLICY.roots, str(tmp_path)), temp=str(tmp_path))
    program = tmp_path / "out" / "prog"
    program.parent.mkdir()
    program.touch()
    assert decide_shell(f"{program} -v", policy).verdict == "allow"
    assert decide_shell(f"{tmp_path}/kubectl delete x", policy).verdict == "ask"
    assert decide_shell("/opt/x/prog -v", policy).verdict == "ask"
    (tmp_path / "link").symlink_to("/opt/x/prog")
    assert decide_shell(f"{tmp_path}/link", policy).verdict == "ask"
    program.parent.chmod(0o777)
    assert decide_shell(f"{program} -v", policy).verdict == "ask"
    here = msgspec.structs.replace(policy, allow=rules("shell(./)"))
    assert decide_shell(f"{tmp_path}/x", here).verdict == "ask"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("python3 - /opt/data <<'E'\nprint(1)\nE\n", "allow"),
        ("node - /opt/data <<'E'\n1\nE\n", "allow"),
        ("python3 -c 'print(1)' /opt/data", "allow"),
        ("python3 /opt/x.py", "ask"),
        ("python3 -u /opt/x.py -", "ask"),
        ("bash -s /opt/data <<'E'\nls\nE\n", "allow"),
        ("bash -posix /opt/x.sh", "ask"),
        ("bash -norc /opt/x.sh", "ask"),
        ("bash - /opt/x.sh", "ask"),
    ],
)
def test_what_follows_code_that_is_given_otherwise_is_no_script(command: str, verdict: str) -> None:
    assert decide_shell(command, CODE).verdict == verdict


@pytest.mark.parametrize(
    "command",
    [
        "docker run -v /:/host alpine sh",
        "docker run -itv /:/host alpine sh",
        "docker run -v/etc:/etc alpine sh",
        "docker run --volume=/home/someone:/h alpine sh",
        "docker run --volume $HOME:/h alpine sh",
        "docker run -v ~/.ssh:/root/.ssh alpine sh",
        "docker run -v ..:/x alpine sh",
        'docker run -v "$PWD/..":/x alpine sh',
        'docker run -v "$(cat place)":/x alpine sh',
        "docker run -v /var/run/docker.sock:/var/run/docker.sock x",
        "docker run --mount type=bind,src=/,dst=/h x",
        "docker run --mount=type=bind,source=/etc,target=/h x",
        "docker run --mount type=volume,dst=/h,volume-opt=device=/ x",
        "docker volume create -o type=none -o o=bind -o device=/ v",
        "docker volume create --opt device=/ v",
        "docker run --privileged x",
        "docker run --privileged=true x",
        "docker run --pid=host x",
        "docker run --pid host x",
        "docker run --device /dev/sda x",
        "docker run --cap-add=SYS_ADMIN x",
        "docker run --cap-add CAP_SYS_ADMIN x",
        "docker run --cap-add all x",
        "docker run --security-opt systempaths=unconfined x",
        "docker container run --privileged x",
        "docker create --privileged x",
        "docker exec --privileged x sh",
        "docker run $x y",
        "docker run --env-file /home/someone/.env x",
        "docker cp x:/y /home/someone/z",
        "docker cp ~/.ssh x:/y",
        "docker build -f /home/someone/Dockerfile .",
        "docker build /home/someone",
        "docker build --secret id=a,src=/home/someone/.npmrc .",
        "docker save -o /home/someone/x x",
        "docker compose -f /home/someone/x.yml up",
        "docker compose -f - up",
        "docker compose run -v /:/host x",
        "docker-compose run -v /:/host x",
        "podman run -v /:/host x",
        "podman pod create --pid=host",
    ],
)
def test_a_container_that_gets_the_machine_is_asked_about(command: str) -> None:
    assert decide_shell(command, DOCKER).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        'docker run -v "$PWD":/app -w /app node npm test',
        "docker run -v $(pwd):/app node",
        "docker run -v ./data:/data x",
        "docker run -v /srv/project/data:/data:ro x",
        "docker run -v data:/var/lib/postgresql x",
        "docker run -v /tmp/x:/x x",
        "docker run --mount type=bind,src=./a,dst=/a x",
        "docker run --mount type=volume,src=data,dst=/a x",
        "docker run --rm --network host -p 80:80 -e A=/b -u 0 x ls /",
        "docker run --gpus all --cap-add SYS_PTRACE --privileged=false x",
        "docker exec x cat /etc/passwd",
        "docker exec x sh -c 'ls /'",
        "docker cp x:/y .",
        "docker cp ./a x:/y",
        "docker build -f docker/Dockerfile -t x .",
        "docker compose -f dev.yml up -d",
        "docker compose logs -f web",
        "docker compose run --rm web ls /",
    ],
)
def test_a_container_that_gets_files_of_the_project_is_not(command: str) -> None:
    assert decide_shell(command, DOCKER).verdict == "allow"


def test_where_all_paths_are_allowed_a_container_gets_every_path_but_not_the_machine() -> None:
    policy = msgspec.structs.replace(DOCKER, allow_all_paths=True)
    assert decide_shell("docker run -v /opt:/host alpine", policy).verdict == "allow"
    assert decide_shell("docker run --privileged alpine", policy).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "source /home/someone/x.sh",
        ". ../other/x.sh",
        "bash /home/someone/x.sh",
        "bash -x -o pipefail ~/x.sh",
        "env A=b sh /home/someone/x.sh",
        "python /home/someone/x.py",
        "python -u -W ignore /home/someone/x.py",
        "node --require /home/someone/x.js a.js",
        "uv run /home/someone/x.py",
        "uv run python /home/someone/x.py",
        "npx tsx ../other/x.ts",
        "deno run -A /home/someone/x.ts",
        "make -f ~/Makefile",
        "make -C/home/someone test",
        "make --file=../Makefile test",
        "pytest ~/tests",
    ],
)
def test_a_script_elsewhere_is_asked_about_under_rules_for_running_code(command: str) -> None:
    assert decide_shell(command, CODE).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "source venv/bin/activate",
        "source ~/.nvm/nvm.sh && npx tsc",
        ". ~/.cargo/env",
        "source /home/someone/.zshrc",
        ". ./env.sh",
        "bash scripts/x.sh",
        "bash -c 'make'",
        "python x.py /home/someone/data.csv",
        "python -c 'print(1)'",
        "python -m pytest",
        "node --test",
        "bash /usr/share/x/y.sh",
        "uv run pytest",
        "make -C sub -f a.mk -j4 test",
        "make -j 4 --directory=sub",
        "pytest tests ./more",
        "python /tmp/not-there-yet.py",
    ],
)
def test_a_script_of_the_project_and_of_the_system_is_not(command: str) -> None:
    assert decide_shell(command, CODE).verdict == "allow"


def test_a_script_in_the_temp_directory_that_others_may_change_is_asked_about(
    tmp_path: Path,
) -> None:
    script = tmp_path / "x.sh"
    script.write_text("true\n")
    policy = msgspec.structs.replace(CODE, roots=(*CODE.roots, str(tmp_path)))
    assert decide_shell(f"bash {script}", policy).verdict == "allow"
    script.chmod(0o666)
    assert decide_shell(f"bash {script}", policy).verdict == "ask"
    script.chmod(0o600)
    tmp_path.chmod(0o777)
    assert decide_shell(f"bash {script}", policy).verdict == "ask"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_script_in_the_temp_directory_of_another_user_is_asked_about(tmp_path: Path) -> None:
    script = tmp_path / "x.sh"
    script.write_text("true\n")
    os.chown(script, 65534, 65534)
    policy = msgspec.structs.replace(CODE, roots=(*CODE.roots, str(tmp_path)))
    assert decide_shell(f"bash {script}", policy).verdict == "ask"


def test_a_group_that_leaves_a_command_out_is_not_offered_with_it() -> None:
    known = msgspec.structs.replace(POLICY, allow=rules("shell(docker ps)"))
    bundle = find_bundle("docker run x", ["shell(docker run)"], None, known)
    assert bundle is not None
    assert bundle.rules == ("shell(@docker)",)
    assert find_bundle("docker run --privileged x", ["shell(docker run)"], None, known) is None
    erasing = "xcrun simctl erase all"
    assert find_everyday(erasing, ["shell(xcrun simctl erase)"], (), POLICY) is None


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("grep", "grep --frob foo /home/someone/x"),
        ("grep", "grep -R --frob=x foo ~"),
        ("egrep", "egrep foo /home/someone/x"),
        ("rg", "rg --frob foo ~"),
        ("cat", "cat --frob ~/.ssh/id_rsa"),
        ("sort", "sort --unk ~/x"),
        ("diff", "diff --frob ~/x ~/y"),
        ("jq", "jq --frob . ~/x"),
        ("awk", "awk --frob '{print}' ~/x"),
        ("unzip", "unzip -p ~/x.zip"),
        ("xxd", "xxd ~/x"),
        ("split", "split ~/x"),
    ],
)
def test_a_rule_for_a_program_that_only_reads_reaches_no_further_than_all_tools(
    rule: str, command: str
) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(f"shell({rule})"))
    everything = msgspec.structs.replace(POLICY, allow_all_tools=True)
    assert decide_shell(command, policy).verdict == "ask"
    assert decide_shell(command, everything).verdict == "ask"
    inside = command.replace("/home/someone/", "").replace("~/.ssh/", "").replace("~/", "")
    assert decide_shell(inside.replace("~", "a"), policy).verdict == "allow"


def test_an_option_of_grep_that_is_not_known_is_tried_behind_the_fence() -> None:
    decision = decide_shell("grep --frob foo a", POLICY)
    assert decision.verdict == "allow"
    assert decision.harmless
    assert decide_shell("sort --frob a", POLICY).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "make -- deploy",
        "sbt ';clean;publish'",
        "make -I /home/someone",
        "make MAKEFILES=/home/someone/x",
        "perl -I/home/someone -MEvil a.pl",
        "ruby -r/home/someone/x a.rb",
        "node --require=/home/someone/x.js a.js",
        "python3 -m pdb /home/someone/x.py",
        "python3 -mcProfile /home/someone/x.py",
        "python3 -m unittest discover -s/home/someone",
        "python3 -m pytest --rootdir=/home/someone",
        "ninja -C /home/someone",
        "cmake --build /home/someone",
        "tox -c/home/someone/tox.ini",
        "eslint --rulesdir /home/someone .",
        "python3 -m pip install x",
        "go run example.com/x@latest",
        "deno run -A npm:x",
        "bun run https://example.com/x.ts",
        "uv run --with x python a.py",
        "mypy --install-types",
    ],
)
def test_running_code_is_not_code_of_elsewhere_by_options_and_launchers(command: str) -> None:
    assert decide_shell(command, CODE).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "make -- all",
        "make PREFIX=/usr/local all",
        "perl -Ilib -MOwn a.pl",
        "python3 -m pdb a.py",
        "python3 -m own.tool /home/someone/data.csv",
        "python3 a.py /home/someone/data.csv",
        "python3 -m pytest tests",
        "cmake -S . -B build -DX=/usr/include",
        "go run ./cmd/x",
        "deno run -A main.ts",
        "uv run pytest",
        "mypy src",
    ],
)
def test_running_code_covers_the_project_s_own(command: str) -> None:
    assert decide_shell(command, CODE).verdict == "allow"
