"""More keys in a real terminal: the prefix, Esc with a draft, vi modes, explained questions."""

import json

from clikit import Cli, bash, serving
from tuikit import conversing, prompts


async def test_a_command_is_typed_beside_the_draft_which_comes_back(cli: Cli) -> None:
    async with serving([{"text": "Read."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("my draft")
        await terminal.sees("› my draft")
        terminal.type("\x18")
        await terminal.sees("Ctrl-X: e editor")
        terminal.type("/")
        await terminal.sees("› /\n▸ /add-dir")
        terminal.type("version\r")
        await terminal.shows("> /version\nTrimtab ")
        await terminal.sees("› my draft")
        terminal.type("\x18")
        await terminal.sees("Ctrl-X: e editor")
        terminal.type("q")
        await terminal.sees("Ctrl-X q does nothing")
        terminal.type("\r")
        await terminal.shows(r"Read\.")
    assert prompts(server) == ["my draft"]


async def test_escape_twice_clears_a_draft_into_the_history(cli: Cli) -> None:
    async with serving([]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("a draft")
        await terminal.sees("› a draft")
        terminal.type("\x1b")
        await terminal.sees("Esc again to clear the draft")
        terminal.type("\x1b")
        await terminal.ready()
        terminal.type("\x1b[A")
        await terminal.sees("› a draft")
        terminal.type("\x03")
        await terminal.ready()


async def test_control_enter_queues_where_the_terminal_reports_it(cli: Cli) -> None:
    script = [{"tools": [bash("sleep 2")]}, {"text": "First."}, {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.sees("○ bash sleep 2")
        terminal.type("later\x1b[13;5u")
        await terminal.sees("queued: later")
        await terminal.shows(r"Second\.")
    assert prompts(server) == ["go", "later"]


async def test_vi_modes_are_shown_and_a_sent_prompt_begins_anew(cli: Cli) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"editorMode": "vi"}))
    async with (
        serving([{"text": "Read.", "repeat": "forever"}]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        await terminal.ready()
        await terminal.sees("INSERT · scripted")
        terminal.type("one two")
        await terminal.sees("› one two")
        terminal.type("\x1b")
        await terminal.sees("NORMAL · scripted")
        terminal.type("0x\r")
        await terminal.shows(r"Read\.")
        await terminal.sees("INSERT · scripted")
        terminal.type("/mo")
        await terminal.sees("▸ /mode")
        terminal.type("\x1b")
        await terminal.hides("▸ /mode")
        await terminal.sees("INSERT · scripted")
        terminal.type("\x03")
        await terminal.ready()
    assert prompts(server) == ["ne two"]


async def test_a_question_mark_explains_a_permission_question(cli: Cli) -> None:
    script = [{"tools": [bash("touch made other")]}, {"text": "Done."}]
    async with serving(script) as server, conversing(cli.use(server), "-i", "go") as terminal:
        await terminal.may_answer()
        terminal.type("?")
        await terminal.shows("asked by +the main agent")
        await terminal.shows("paths +made, other")
        await terminal.shows("why +No rule allows touch")
        await terminal.may_answer()
        terminal.type("!")
        await terminal.shows("Run this command. — yes, in this session")
        await terminal.shows(r"Done\.")
        assert (cli.cwd / "made").exists()


async def test_damaged_history_and_unknown_settings_are_one_remark_each(cli: Cli) -> None:
    settings = {"theme": "purple", "editorMode": "nano", "notifications": 7}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    lines = [json.dumps({"text": "a good one"}).encode(), b"{broken", b"\xff\xfe", b"[]"]
    for name in ("prompt-history.jsonl", "state/prompt-history.jsonl"):
        path = cli.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\n".join(lines) + b"\n")
    async with serving([{"text": "On."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        await terminal.shows("The setting theme has no value 'purple'; use one of auto, dark")
        await terminal.shows("The setting editorMode has no value 'nano'")
        terminal.type("\x1b[A")
        await terminal.sees("› a good one")
        terminal.type("\r")
        await terminal.shows(r"On\.")
    told = "The history of prompts has 3 damaged lines; the others are used."
    assert terminal.text.count(told) == 1, terminal.text
