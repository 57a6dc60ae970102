"""What rules for groups, whole programs and the project's own programs leave out."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.groups import load_groups, load_whole_programs
from trimtab.permissions.left_out import name_package, reaches_far

WIDEST = msgspec.structs.replace(
    POLICY,
    allow=rules(
        *("write", "shell(./)"),
        *(f"shell(@{name})" for name in (*load_groups(), *load_whole_programs())),
    ),
)


@pytest.mark.parametrize(
    "command",
    [
        "npm rum deploy",
        "npm urn deploy",
        "npm run-s deploy",
        "npm run -w pkg deploy",
        "COMPOSE_FILE=/home/someone/x.yml docker compose up",
        "COMPOSE_FILE=../x.yml docker compose up",
        "docker run -v src/../..:/x y",
        "docker run --mount type=bind,src=src/../..,dst=/x y",
        "docker run --cap-add=BPF x",
        "docker build --allow security.insecure .",
        "docker buildx build --allow=security.insecure .",
        "docker buildx build --output type=local,dest=/home/someone .",
        "docker compose down -v",
        "docker compose -f dev.yml down --volumes",
        "docker compose rm -fsv db",
        "docker rm -fv x",
        "docker container rm --volumes x",
        "docker rm $x",
        "docker-compose down -v",
        "podman compose down -v",
        "podman rm -v x",
        "podman kube down --force x.yml",
        "docker compose up -V",
        "docker compose up --renew-anon-volumes",
        "docker compose build --push",
        "docker-compose build --push",
        "docker compose publish x/y",
        "docker buildx build --push .",
        "docker build --output type=registry .",
        "docker buildx build -o type=image,push=true .",
        "docker model push x",
        "npm run publish",
        "npm run deploy:prod",
        "npm exec npm publish",
        "npm exec -- npm publish",
        "npm exec -w a -- npm publish",
        "npm x npm publish",
        "npm config set registry https://x.y",
        "pnpm -r publish",
        "pnpm deploy",
        "pnpm --filter x exec npm publish",
        "pnpm -C sub dlx wrangler deploy",
        "node node_modules/wrangler/bin/wrangler.js deploy",
        "node node_modules/.bin/wrangler deploy",
        "pnpm -r exec npm publish",
        "pnpm dlx wrangler deploy",
        "pnpm exec wrangler@4 deploy",
        "yarn npm publish",
        "yarn workspace a publish",
        "yarn workspaces foreach npm publish",
        "yarn wrangler deploy",
        "yarn --cwd /elsewhere publish",
        "bun run deploy",
        "bun x wrangler deploy",
        "deno run npm:wrangler deploy",
        "deno task deploy",
        "lerna exec -- npm publish",
        "cargo ws publish",
        "cargo workspaces version",
        "cargo xtask publish",
        "uv run twine upload dist/a",
        "uv run --with twine twine upload dist/a",
        "python -m twine upload dist/a",
        "python3 -um twine upload dist/a",
        "python3 -mtwine upload dist/a",
        "poetry -C sub run aws s3 rm s3://a",
        "poetry run aws s3 rm s3://a",
        "bundle exec cap production deploy",
        "./node_modules/.bin/wrangler deploy",
        "node_modules/.bin/lerna publish",
        ".venv/bin/twine upload dist/a",
        "./gradlew publish",
        "./gradlew publishToMavenLocal",
        "./mvnw deploy",
        "nx release",
        "npx nx run app:deploy",
        "sbt publishSigned",
        "sbt +publish",
        "rake release",
        "make deploy",
        "just publish",
        "earthly --push +all",
        "git remote add x https://x.y/z",
        "git remote set-url origin https://x.y/z",
        "git -C . remote set-url --push origin https://x.y/z",
        "git remote rename origin old",
        "gh pr comment 3 --delete-last",
        "kubectl config view --raw",
        "xcrun simctl erase all",
        "xcrun simctl delete unavailable",
        "npx prisma migrate reset --force",
        "npx prisma db push --force-reset",
        "rails db:drop",
        "php artisan migrate:fresh",
        "python manage.py flush",
        "celery -A app purge",
        "opam switch remove x",
        "conda remove -n x --all",
    ],
)
def test_what_reaches_others_or_destroys_is_asked_about_under_the_widest_answers(
    command: str,
) -> None:
    assert decide_shell(command, WIDEST).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "docker compose down",
        "docker compose down --remove-orphans --rmi local",
        "docker compose rm -fs db",
        "docker rm -f x",
        "docker compose up -d --build --remove-orphans",
        "docker build -t x .",
        "docker run --rm -d -p 80:80 --name x img",
        "docker exec -it x rm -v y",
        "npm run build",
        "npm run test:release",
        "npm exec tsc",
        "npm config get registry",
        "npm test -- publish",
        "npx tsc --version",
        "node node_modules/.bin/eslint .",
        "node -e \"console.log(require('./node_modules/firebase/package.json').version)\"",
        "python3 -mpytest",
        "npx eslint .",
        "npx jest src/publish.test.ts",
        "npx prisma migrate dev",
        "npx prisma db push",
        "pnpm exec tsc",
        "yarn workspace a build",
        "yarn --cwd sub",
        "cargo build --release",
        "cargo run -- publish",
        "uv run pytest tests/test_release.py",
        "./gradlew assembleRelease",
        "./scripts/check",
        "make release.o",
        "make test",
        "git remote -v",
        "git remote remove x",
        "git remote prune origin",
        "gh pr comment 3 -b text",
        "kubectl config view",
        "xcrun simctl boot x",
        "rails db:migrate",
        "php artisan migrate",
        "python manage.py migrate",
        "celery -A app worker",
    ],
)
def test_everyday_calls_beside_them_are_not(command: str) -> None:
    assert decide_shell(command, WIDEST).verdict == "allow"


@pytest.mark.parametrize("rule", ["shell(docker rm)", "shell(docker:*)", "shell"])
def test_a_rule_that_names_a_program_covers_its_arguments(rule: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(rule))
    assert decide_shell("docker rm -v x", policy).verdict == "allow"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("wrangler", "wrangler"),
        ("wrangler@4.1", "wrangler"),
        ("@scope/tool@2", "@scope/tool"),
        ("npm:wrangler@4", "wrangler"),
        ("./node_modules/.bin/wrangler", "wrangler"),
    ],
)
def test_a_program_is_known_by_its_package_and_by_its_path(word: str, name: str) -> None:
    assert name_package(word) == name


def test_programs_of_other_peoples_machines_are_known() -> None:
    assert reaches_far("/usr/local/bin/aws")
    assert not reaches_far("tsc")
