"""`docs/guides/extending.md`: an event and a kind of permission are one row each."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "extending.md"
PROBE = """
import asyncio, json, os, sys, tempfile
from collections.abc import Sequence
from pathlib import Path

from trimtab import Runtime, SessionOptions
from trimtab.contracts.options import Client, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, ToolResult
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Question
from trimtab.testing import Script, ScriptedProvider
from trimtab.transports.acp.questions import describe_request as show_in_editor
from trimtab.transports.headless.questions import describe_request as show_as_text
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.questions import build_question
from trimtab.transports.tui.transcript import Transcript


class Deploy:
    spec = ToolSpec(name="deploy", description="Deploys.", parameters={
        "type": "object", "properties": {"target": {"type": "string"}}})

    def access(self, args, ctx):
        return [Access(kind="deploy", target=args["target"])]

    async def run(self, args, ctx):
        return ToolResult(text="deployed")


async def main(folder):
    asked, fold, transcript = [], PartFold(), Transcript()

    def on_event(event, line):
        for part in fold.apply(event):
            transcript.apply(part)
            if isinstance(part, Question) and not part.done:
                asked.append(part)

    async def ask(request_id, request):
        return Answer(kind="approve-for-session")

    def call(number, target):
        return {"tools": [{"id": f"c{number}", "name": "deploy", "arguments": {"target": target}}]}

    script = [call(1, "production"), call(2, "production"), call(3, "staging"), {"text": "done"}]
    runtime = Runtime(env={"COPILOT_HOME": f"{folder}/home", "PATH": os.environ["PATH"]},
                      provider=ScriptedProvider(Script.of(script)))
    options = SessionOptions(
        cwd=folder, permissions=PermissionOptions(allow=("deploy(staging)",)))
    live = await runtime.create(options, Client(on_event=on_event, ask=ask))
    live.controls.set_tools((Deploy(),), set())
    await live.ask("deploy")
    live.emit(Deployed(target="production"))
    await live.close()
    (question,) = asked
    print(json.dumps({
        "asked": [part.request["target"] for part in asked],
        "rules": question.request["suggestedRules"],
        "terminal": build_question(question, 80).title,
        "text": show_as_text(question.request).split("\\n")[0],
        "editor": (await show_in_editor(question.request, None, None))[0]["content"]["text"],
        "shown": "\\n".join(plain(line) for line in transcript.take(80)),
    }))


asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.proves("VSC-28")
def test_a_row_adds_an_event_and_a_row_adds_a_kind_of_permission(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "extended.py"
    script.write_text(code + PROBE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["asked"] == ["production"]
    assert found["rules"] == ["deploy(production)"]
    assert found["terminal"] == found["text"] == found["editor"] == "Deploy to production?"
    assert "· Deployed to production." in found["shown"]
    assert found["shown"].count("● deploy") == 3
