"""Facts that outlive a session: where they are, what survives damage, and how much there may be."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import Bench
from trimtab.tools.memories import MAX_BYTES, Memories, MemoriesFull, Memory
from trimtab.tools.read_memories.tool import ReadMemories
from trimtab.tools.store_memory.tool import StoreMemory


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(str(tmp_path / "memories"), "/src/shop")


def fact(text: str) -> Memory:
    return Memory(subject="tests", fact=text)


def test_facts_come_back_in_order_and_once(memories: Memories) -> None:
    assert memories.read("repository") == []
    assert memories.add("repository", fact("one"))
    assert memories.add("repository", fact("two"))
    assert not memories.add("repository", fact("one"))
    assert [memory.fact for memory in memories.read("repository")] == ["one", "two"]
    assert memories.read("user") == []


def test_repositories_do_not_share_facts_and_only_the_person_can_read_them(
    memories: Memories, tmp_path: Path
) -> None:
    memories.add("repository", fact("here"))
    memories.add("user", fact("everywhere"))
    other = Memories(str(tmp_path / "memories"), "/src/shop%2Fa")
    assert other.read("repository") == []
    assert [memory.fact for memory in other.read("user")] == ["everywhere"]
    assert Path(memories.path("user")).stat().st_mode & 0o777 == 0o600
    assert Memories(str(tmp_path / "memories")).read("repository") == []


def test_half_a_line_spoils_nothing_but_itself(memories: Memories) -> None:
    memories.add("user", fact("one"))
    path = Path(memories.path("user"))
    path.write_bytes(path.read_bytes() + b'{"subject": "torn", "fa\xff')
    memories.add("user", fact("two"))
    assert [memory.fact for memory in memories.read("user")] == ["one", "two"]


def test_there_is_an_end_to_it(memories: Memories) -> None:
    for number in range(MAX_BYTES // 1200):
        memories.add("user", fact(f"{number} " + "x" * 1000))
    with pytest.raises(MemoriesFull):
        memories.add("user", fact("y" * MAX_BYTES))
    assert memories.add("user", fact("short"))
    assert Path(memories.path("user")).stat().st_size <= MAX_BYTES


@given(st.text(), st.text(min_size=1))
def test_any_text_comes_back_as_it_was(subject: str, text: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        memories = Memories(folder)
        memories.add("user", Memory(subject=subject, fact=text))
        assert memories.read("user") == [Memory(subject=subject, fact=text)]


async def test_the_tools_say_what_became_of_a_fact(bench: Bench, memories: Memories) -> None:
    bench.tools |= {"store_memory": StoreMemory(memories), "read_memories": ReadMemories(memories)}
    store = {"subject": "tests", "fact": "Run make test.", "citations": "Makefile:3"}
    assert await bench.text("read_memories") == "Nothing has been stored yet."
    assert await bench.text("store_memory", **store) == "Memory stored."
    assert await bench.text("store_memory", **store) == "This fact is already stored."
    assert await bench.text("store_memory", **{**store, "scope": "user"}) == "Memory stored."
    assert await bench.text("read_memories") == (
        "About this repository:\n- tests: Run make test. (Makefile:3)\n\n"
        "About the user:\n- tests: Run make test. (Makefile:3)"
    )
    too_long = await bench.call("store_memory", subject="x", fact="y" * 2001)
    assert too_long.kind == "failure"
    access = bench.access("store_memory", **store)
    assert (access.kind, access.target) == ("memory", "Run make test.")


async def test_without_memory_or_a_disk_the_model_is_told(bench: Bench, tmp_path: Path) -> None:
    assert (await bench.call("store_memory", subject="a", fact="b")).kind == "failure"
    assert (await bench.call("read_memories")).kind == "failure"
    (tmp_path / "file").write_text("no folder")
    bench.tools["store_memory"] = StoreMemory(Memories(str(tmp_path / "file")))
    result = await bench.call("store_memory", subject="a", fact="b")
    assert result.text.startswith("The fact was not stored: ")
