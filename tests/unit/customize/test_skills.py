"""Skills and commands: what is read from their files, which one wins, what broken ones do."""

import os
from pathlib import Path

import pytest

from customizekit import places_in, write
from trimtab.contracts.customization import FoundSkills, Skill
from trimtab.customize.folders import SkillFolder, command_folders, skill_folders
from trimtab.customize.skills import find_skills, read_body
from trimtab.prompts.instructions import LIST_SHARE, MAX_LIST_LENGTH, list_skills

ROWS = [
    ("repo/.github/skills", "repository", "project"),
    ("repo/.agents/skills", "repository", "project"),
    ("repo/.claude/skills", "claude", "project"),
    ("home/.copilot/skills", "user", "personal-copilot"),
    ("home/.agents/skills", "user", "personal-agents"),
    ("home/.claude/skills", "claude", "custom"),
]


def find(folder: Path, **options: bool) -> FoundSkills:
    places = places_in(folder, **options)  # type: ignore[arg-type]
    return find_skills(skill_folders(places) + command_folders(places))


def only(folder: Path, text: str | bytes) -> Skill:
    write(folder / "repo/.github/skills/one/SKILL.md", text)
    (skill,) = find(folder).skills.values()
    return skill


@pytest.mark.parametrize(("name", "source", "origin"), ROWS)
def test_a_skill_of_every_row_is_found(tmp_path: Path, name: str, source: str, origin: str) -> None:
    path = write(tmp_path / name / "one" / "SKILL.md", "Do it.")
    (skill,) = find(tmp_path).skills.values()
    assert (skill.name, skill.path, skill.source, skill.origin) == (
        "one",
        str(path),
        source,
        origin,
    )


def test_the_first_folder_wins_and_the_others_say_by_what(tmp_path: Path) -> None:
    for name, _, _ in reversed(ROWS):
        write(tmp_path / name / "one" / "SKILL.md", f"from {name}")
    write(tmp_path / "repo/.claude/commands/one.md", "a command")
    found = find(tmp_path)
    assert list(found.skills) == ["one"]
    assert read_body(found.skills["one"]) == "from repo/.github/skills"
    assert len(found.shadowed) == len(ROWS)
    assert found.shadowed[-1].why == "a skill wins over a command of the same name"


def test_a_folder_that_is_not_trusted_gives_none(tmp_path: Path) -> None:
    for name, _, _ in ROWS:
        write(tmp_path / name / name.replace("/", "-") / "SKILL.md", "x")
    write(tmp_path / "repo/.claude/commands/c.md", "x")
    write(tmp_path / "home/.claude/commands/mine.md", "x")
    found = find(tmp_path, trusted=False)
    assert not [skill for skill in found.skills.values() if "/repo/" in skill.path]
    assert "mine" in found.skills


@pytest.mark.proves("SKILL-05")
def test_a_file_directly_in_the_folder_is_the_one_skill_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "single"
    write(folder / "SKILL.md", "---\ndescription: d\n---\nalone")
    write(folder / "other" / "SKILL.md", "not looked at")
    found = find_skills([SkillFolder(path=str(folder), source="environment", origin="custom")])
    assert [(skill.name, read_body(skill)) for skill in found.skills.values()] == [
        ("single", "alone")
    ]


def test_fields_are_read_in_every_spelling(tmp_path: Path) -> None:
    text = (
        "---\nname: other-name\ndescription: |\n  Two\n  lines\nallowed-tools: Bash(git add:*, git rm:*), view\n"
        "argument-hint: [issue] [branch]\nuser-invocable: false\ndisable-model-invocation: true\n---\nbody\n"
    )
    skill = only(tmp_path, text.replace("[issue] [branch]", "'[issue] [branch]'"))
    assert skill.name == "other-name"
    assert skill.description == "Two lines"
    assert skill.allowed_tools == ("Bash(git add:*, git rm:*)", "view")
    assert skill.argument_hint == "[issue] [branch]"
    assert (skill.user_invocable, skill.model_invocable) == (False, False)


@pytest.mark.proves("SKILL-07")
def test_without_a_description_the_first_three_lines_are_it(tmp_path: Path) -> None:
    skill = only(tmp_path, "# Title\n\none\ntwo\nthree\n")
    assert (skill.name, skill.description) == ("one", "Title one two")
    assert (skill.user_invocable, skill.model_invocable, skill.allowed_tools) == (True, True, None)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("user-invocable: perhaps", "user-invocable is ignored: it must be true or false"),
        ("allowed-tools: {a: b}", "allowed-tools is ignored: it must be a list of names"),
        ("name: ../../etc", "cannot be used"),
        ("name: " + "x" * 65, "cannot be used"),
        ("description: [1, 2]", "description is ignored: it must be text"),
        ("license: MIT", "license has no effect: it is for people who share the skill"),
        ("surprise: 1", "the field surprise is not known and has no effect"),
    ],
)
def test_a_field_that_cannot_be_used_is_one_note_and_the_skill_loads(
    tmp_path: Path, head: str, message: str
) -> None:
    write(tmp_path / "repo/.github/skills/one/SKILL.md", f"---\n{head}\n---\nbody\n")
    found = find(tmp_path)
    assert list(found.skills) == ["one"]
    (problem,) = found.problems
    assert message in problem.message
    assert (problem.line, problem.note) == (2, True)


def test_broken_skills_are_one_problem_each_and_the_rest_loads(tmp_path: Path) -> None:
    base = tmp_path / "repo/.github/skills"
    write(base / "good/SKILL.md", "fine")
    write(base / "binary/SKILL.md", b"\0\1")
    write(base / "yaml/SKILL.md", "---\na: [\n---\nbody\n")
    (base / "folder/SKILL.md").mkdir(parents=True)
    (base / "gone").mkdir()
    (base / "gone/SKILL.md").symlink_to("nowhere")
    (base / "loop").symlink_to("loop")
    found = find(tmp_path)
    assert sorted(found.skills) == ["good", "yaml"]
    assert len(found.problems) == 4, found.problems
    assert not any(problem.note for problem in found.problems)


def test_one_skill_under_two_names_is_one_skill(tmp_path: Path) -> None:
    write(tmp_path / "repo/.github/skills/one/SKILL.md", "x")
    (tmp_path / "repo/.claude").mkdir()
    (tmp_path / "repo/.claude/skills").symlink_to("../.github/skills")
    found = find(tmp_path)
    assert list(found.skills) == ["one"]
    assert found.shadowed == ()


def test_ten_thousand_skills_are_found_and_what_a_prompt_says_of_them_is_bounded(
    tmp_path: Path,
) -> None:
    base = tmp_path / "repo/.github/skills"
    for number in range(10_000):
        folder = f"{base}/s{number}"
        os.makedirs(folder)
        with open(f"{folder}/SKILL.md", "w") as file:
            file.write("---\ndescription: does things\n---\nbody\n")
    found = find(tmp_path)
    assert len(found.skills) == 10_000
    listed = list_skills([(skill.name, skill.description) for skill in found.active])
    assert len(listed) < MAX_LIST_LENGTH + 200
    *shown, rest = listed.split("\n")
    assert f"- {10_000 - len(shown):,} more skills not listed: call the skill tool" in rest


@pytest.mark.parametrize("window", [2_000, 9_000, 30_000, 1_000_000])
def test_the_list_of_skills_leaves_room_in_every_window(window: int) -> None:
    listed = list_skills(
        [(f"skill-{n}", "does things with files " * 9) for n in range(999)], window
    )
    assert len(listed) / 4 < window / LIST_SHARE + 50
    assert "call the skill tool" in listed


def test_commands_of_other_agents_are_commands_too(tmp_path: Path) -> None:
    write(
        tmp_path / "repo/.gemini/commands/git/commit.toml",
        'description = "Commits"\nprompt = """Write a message for {{args}}."""\n',
    )
    write(tmp_path / "repo/.gemini/commands/broken.toml", 'prompt = "x\n')
    write(tmp_path / "repo/.gemini/commands/nothing.toml", 'description = "x"\n')
    write(tmp_path / "repo/.cursor/commands/review.md", "Review it.")
    write(tmp_path / "home/.codex/prompts/draft.md", "Draft $1.")
    write(tmp_path / "repo/.claude/commands/front/test.md", "Test the front.")
    found = find(tmp_path)
    assert set(found.skills) == {"git:commit", "review", "draft", "front:test"}
    commit = found.skills["git:commit"]
    assert (commit.description, commit.is_command, commit.source) == ("Commits", True, "gemini")
    assert read_body(commit) == "Write a message for $ARGUMENTS."
    assert {(Path(problem.file).name, problem.line) for problem in found.problems} == {
        ("broken.toml", 1),
        ("nothing.toml", 0),
    }
