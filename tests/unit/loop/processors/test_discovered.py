"""Instructions for a path, told when a tool first touches it."""

from loopkit import TouchingTool, make_run
from trimtab.contracts.customization import Instruction
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access, ToolResult
from trimtab.loop.processors.discovered import DiscoveredInstructions

TOUCHED = (
    Access(kind="shell", target="cat a.py"),
    Access(kind="read", target="src/a.py", mutates=False),
    Access(kind="write", target="src/b.py"),
    Access(kind="read", target="", mutates=False),
    Access(kind="url", target="https://a.example"),
)


def instruction(text: str, description: str = "") -> Instruction:
    return Instruction(
        text=text,
        paths=(f"{text}.md", "copy.md"),
        source="repository",
        location="repository",
        description=description,
    )


async def test_each_path_that_is_read_or_written_brings_its_instructions() -> None:
    touched: list[str] = []
    known = {"src/a.py": [instruction("short", "About a."), instruction("long")]}

    def touch(path: str) -> list[Instruction]:
        touched.append(path)
        return known.get(path, [])

    run, result = make_run([]), ToolResult(text="x")
    pending = PendingCall(
        call=ToolCall(id="c", name="look", arguments=""), tool=TouchingTool(*TOUCHED), args={}
    )
    processor = DiscoveredInstructions(touch, lambda found: f"[{found.text}]")
    assert await processor.after_tool(run, pending, result) is result
    assert touched == ["src/a.py", "src/b.py"]
    first, second = run.session.of("system.notification")  # type: ignore[attr-defined]
    assert first.content == "<system_notification>\n[short]\n</system_notification>"
    assert first.kind == {
        "type": "instruction_discovered",
        "sourcePath": "short.md",
        "triggerFile": "src/a.py",
        "triggerTool": "look",
        "description": "About a.",
    }
    assert "description" not in second.kind
