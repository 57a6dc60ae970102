"""Programs that run others elsewhere, or in a language of their own, where rules forbid commands."""

import msgspec
import pytest

from permissionkit import DEVELOPER, POLICY, read_cases, read_scripts, rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.decide_shell import decide_shell

RUNNING_RM = r"""
docker run alpine rm x
docker run --rm -it alpine sh -c 'rm x'
docker exec c rm x
docker compose exec web rm x
podman run -it alpine rm x
kubectl exec pod -- rm x
ssh host rm x
ssh -p 22 u@h 'cd /x && rm y'
ssh host /bin/rm x
printf 'rm x' | ssh host bash
ssh host bash <<'E'⏎rm x⏎E
python -c "import os; os.system('rm x')"
python3.11 -c 'import subprocess; subprocess.run(["rm", "x"])'
python3 - <<'E'⏎import os⏎os.system('rm x')⏎E
echo "import os; os.system('rm x')" | python3
python -m timeit 'import os; os.system("rm x")'
uv run python -c 'import os; os.system("rm x")'
node -e "require('child_process').execSync('rm x')"
perl -e 'system("rm x")'
perl -e 'system("rm", "x")'
ruby -e '`rm x`'
php -r 'system("rm x");'
lua -e 'os.execute("rm x")'
osascript -e 'do shell script "rm x"'
awk 'BEGIN{system("rm x")}'
printf 'a:\n\trm x\n' | make -f -
make --eval='a:;rm x' a
find . -exec rm {} +
ls | xargs rm
env -S 'rm x'
nohup rm x
timeout 5 rm x
watch 'rm x'
parallel rm ::: a
tmux new 'rm x'
screen -dm rm x
echo 'rm x' | at now
echo '* * * * * rm x' | crontab -
systemd-run rm x
vagrant ssh -c 'rm x'
gcloud compute ssh h --command 'rm x'
aws ssm send-command --parameters commands='rm x'
""".strip().split("\n")
RUNNING_PUSH = """
ssh host git push
ssh host 'cd app; git -C x push --tags'
docker exec c git push
kubectl exec p -- git -C x push
python -c "os.system('git push')"
python -c "subprocess.run(['git', 'push'])"
node -e "spawn('git', ['push', '-f'])"
bash -c 'git push'
""".strip().split("\n")
OTHER = """
docker ps
docker run --rm alpine ls
docker rm box
docker compose rm web
ssh host ls
kubectl get pods
python script.py
python -c 'print(1)'
python -c 'import shutil; shutil.rmtree("x")'
perl -pe 's/a/b/' f
node app.js
make
python -c 'print("arm", "rm-x", "x_rm")'
git status
""".strip().split("\n")


def everything_but(*deny: str, **changes: object) -> Policy:
    return msgspec.structs.replace(
        POLICY,
        allow_all_tools=True,
        allow_all_paths=True,
        allow_all_urls=True,
        allow_destructive=True,
        deny=rules(*deny),
        **changes,
    )


@pytest.mark.parametrize("command", RUNNING_RM)
@pytest.mark.parametrize("rule", ["shell(rm)", "shell(rm:*)", "shell(/bin/rm)"])
def test_a_forbidden_command_that_others_are_given_is_not_allowed(command: str, rule: str) -> None:
    if rule == "shell(/bin/rm)" and decide_shell(command, everything_but("shell(rm)")).rule:
        return  # the name of a file is another command, and here the command itself is known
    text = command.replace("⏎", "\n")
    assert decide_shell(text, everything_but(rule)).verdict != "allow"
    allowed = msgspec.structs.replace(DEVELOPER, allow=rules("shell"), deny=rules(rule))
    assert decide_shell(text, allowed).verdict != "allow", "nor by a rule for the program"


@pytest.mark.parametrize("command", RUNNING_PUSH)
def test_a_forbidden_subcommand_that_others_are_given_is_not_allowed(command: str) -> None:
    assert decide_shell(command, everything_but("shell(git push)")).verdict != "allow"


@pytest.mark.parametrize("command", OTHER)
def test_what_does_not_mention_it_is_not_asked_about(command: str) -> None:
    decision = decide_shell(command, everything_but("shell(rm)", "shell(git push)"))
    assert decision.verdict == "allow", decision.reason


@pytest.mark.parametrize("command", RUNNING_RM[:4])
def test_without_such_a_rule_nothing_is_asked(command: str) -> None:
    assert decide_shell(command, everything_but("shell(mkfs)", "read(nothing)")).verdict == "allow"


def test_everyday_commands_are_seldom_asked_about_more() -> None:
    commands = [*read_scripts("everyday"), *read_cases("harmless")]
    denying = msgspec.structs.replace(DEVELOPER, deny=rules("shell(git push)", "shell(rm)"))
    allowed = [one for one in commands if decide_shell(one, DEVELOPER).verdict == "allow"]
    asked = [one for one in allowed if decide_shell(one, denying).verdict == "ask"]
    assert len(asked) <= 0.02 * len(allowed), asked
