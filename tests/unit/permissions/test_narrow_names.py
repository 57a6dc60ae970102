"""The names of commands in the rules that lasting answers make."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, to_rules
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.narrow_names import name_narrowly
from trimtab.permissions.shell.verdict.analysis import Found


@pytest.mark.parametrize(
    ("leading", "name"),
    [
        (("cargo", "test", "-q"), "cargo test"),
        (("cargo",), "cargo"),
        (("cargo", "-q", "test"), "cargo"),
        (("cargo", "a,b"), "cargo"),
        (("cargo", "a*"), "cargo"),
        (("cargo", "a'b"), "cargo"),
        (("cargo", ""), "cargo"),
        (("docker", "compose", "up"), "docker compose up"),
        (("docker", "compose", "-f"), "docker compose"),
        (("docker", "compose"), "docker compose"),
        (("docker", "ps", "up"), "docker ps"),
        (("aws", "eks", "list-addons"), "aws eks list-addons"),
        (("gcloud", "compute", "instances", "list"), "gcloud compute instances list"),
        (("gcloud", "compute", "ssh", "host"), "gcloud compute ssh host"),
        (("gcloud", "projects", "list"), "gcloud projects list"),
        (("az", "vm", "list"), "az vm list"),
        (("az", "storage", "account", "list"), "az storage account list"),
        (("terraform", "state", "list"), "terraform state list"),
        (("terraform", "plan", "x"), "terraform plan"),
        (("frob", "x"), "frob"),
        (("git", "remote", "add", "x"), "git remote add"),
        (("source", "/x/y.sh"), "source /x/y.sh"),
        (("wrangler", "deploy"), "wrangler deploy"),
        (("npx", "wrangler", "deploy"), "npx wrangler deploy"),
        (("npx", "wrangler", "--version"), "npx wrangler --version"),
        (("npx", "wrangler@4", "deploy"), "npx wrangler@4 deploy"),
        (("npx", "-p", "wrangler", "wrangler", "deploy"), "npx -p wrangler wrangler deploy"),
        (("bunx", "wrangler", "deploy"), "bunx wrangler deploy"),
        (("pnpm", "dlx", "wrangler", "deploy"), "pnpm dlx wrangler deploy"),
        (("npm", "exec", "--", "wrangler", "deploy"), "npm exec -- wrangler deploy"),
        (("yarn", "wrangler", "deploy"), "yarn wrangler deploy"),
        (("yarn", "run", "wrangler", "deploy"), "yarn run wrangler deploy"),
        (("uvx", "twine", "upload", "x"), "uvx twine upload"),
        (("uv", "run", "--with", "a", "twine", "upload"), "uv run --with a twine upload"),
        (("uv", "tool", "run", "twine", "upload"), "uv tool run twine upload"),
        (("pipx", "run", "twine", "upload"), "pipx run twine upload"),
        (("poetry", "run", "aws", "s3", "rm"), "poetry run aws s3 rm"),
        (("python", "-m", "twine", "upload"), "python -m twine upload"),
        (("python", "-m", "pytest", "tests"), "python -m pytest"),
        (("bundle", "exec", "rspec", "x"), "bundle exec rspec"),
        (("dotnet", "tool", "run", "x", "y"), "dotnet tool run x"),
        (("./node_modules/.bin/wrangler", "deploy"), "./node_modules/.bin/wrangler deploy"),
        (("npx", "tsc", "--version"), "npx tsc"),
        (("npx", "jest", "src/a.test.ts"), "npx jest"),
        (("npx", "prisma", "generate"), "npx prisma generate"),
        (("npx", "prisma", "migrate", "reset"), "npx prisma migrate reset"),
        (("npx", "nx", "release"), "npx nx release"),
        (("npx", "npm", "publish"), "npx npm publish"),
        (("ssh", "-p", "22", "host", "ls"), "ssh -p 22 host"),
        (("npx", "wrangler"), None),
        (("npx", "--frob"), None),
        (("npx", "npm", "-w", "a", "publish"), None),
        (("kubectl", "--frob", "get"), None),
        (("terraform",), None),
        (("ssh", "-v"), None),
        ((), "frob"),
    ],
)
def test_a_command_is_named_by_as_many_words_as_say_what_it_does(
    leading: tuple[str, ...], name: str | None
) -> None:
    first = leading[0] if leading else "frob"
    found = Found(identifier=first, read_only=False, base=first, words=leading, leading=leading)
    assert name_narrowly(found) == name


@pytest.mark.parametrize(
    ("answered", "later", "verdict"),
    [
        ("npx wrangler --version", "npx wrangler deploy", "ask"),
        ("npx wrangler deploy", "npx wrangler deploy --env x", "allow"),
        ("npx wrangler deploy", "npx wrangler secret put A", "ask"),
        ("uv run --with twine twine check d", "uv run --with twine twine upload d", "ask"),
        ("npx eslint --version", "npx eslint .", "allow"),
        ("git push", "git push origin main", "allow"),
        ("git push", "git push -u origin HEAD", "allow"),
        ("git push", "git push https://other.x/y main", "ask"),
        ("git push", "git push git@other.x:y main", "ask"),
        ("git push", "git push ../other", "ask"),
        ("git push", "git push --repo=https://other.x/y", "ask"),
        ("git push", "git push $x main", "ask"),
        ("git push https://a.x/y", "git push https://a.x/y main", "allow"),
        ("git push https://a.x/y", "git push https://b.x/y main", "ask"),
    ],
)
def test_a_lasting_answer_covers_what_a_person_saw(answered: str, later: str, verdict: str) -> None:
    access = Access(kind="shell", target=answered)
    approval = generalise(access, read_script(answered, POLICY), POLICY)
    policy = msgspec.structs.replace(POLICY, allow=to_rules(approval, "session"))
    assert decide_shell(answered, policy).verdict == "allow"
    assert decide_shell(later, policy).verdict == verdict


def test_a_rule_that_somebody_wrote_covers_a_push_to_any_address() -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules("shell(git push)"))
    assert decide_shell("git push https://other.x/y main", policy).verdict == "allow"


def test_a_push_to_an_address_behind_options_offers_nothing_for_longer() -> None:
    command = "git push -u https://other.x/y main"
    access = Access(kind="shell", target=command)
    assert generalise(access, read_script(command, POLICY), POLICY) is None
