"""How often the embedded model fixes a one-line bug in a small file, with the product as it is.

Usage: embedded.py [NUMBER …]: all tasks, or those of these numbers.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS: tuple[tuple[str, str, str], ...] = (
    ("stats.py", "def mean(values):\n    return sum(values) / (len(values) - 1)\n", "assert mean([2, 4, 6]) == 4, f'the mean of 2, 4, 6 is 4, not {mean([2, 4, 6])}'"),
    ("words.py", "def count_vowels(text):\n    return sum(1 for c in text if c in 'aeio')\n", "assert count_vowels('guru') == 2, f'guru has 2 vowels, not {count_vowels(\"guru\")}'"),
    ("temps.py", "def to_celsius(f):\n    return (f - 32) * 9 / 5\n", "assert to_celsius(212) == 100, f'212 F is 100 C, not {to_celsius(212)}'"),
    ("ranges.py", "def inclusive(a, b):\n    return list(range(a, b))\n", "assert inclusive(1, 3) == [1, 2, 3], f'1 to 3 is [1, 2, 3], not {inclusive(1, 3)}'"),
    ("names.py", "def initials(name):\n    parts = name.split()\n    return ''.join(p[1] for p in parts)\n", "assert initials('Ada Lovelace') == 'AL', f'AL expected, not {initials(\"Ada Lovelace\")}'"),
    ("bank.py", "class Account:\n    def __init__(self):\n        self.balance = 100\n\n    def withdraw(self, amount):\n        self.balance += amount\n", "a = Account()\na.withdraw(30)\nassert a.balance == 70, f'100 less 30 is 70, not {a.balance}'"),
    ("sorter.py", "def largest(values, n):\n    return sorted(values)[:n]\n", "assert sorted(largest([5, 1, 9, 7], 2)) == [7, 9], f'[7, 9] expected, not {largest([5, 1, 9, 7], 2)}'"),
    ("ages.py", "def is_adult(age):\n    return age > 18\n", "assert is_adult(18) is True, 'a person of 18 is an adult'"),
    ("shout.py", "def shout(text):\n    return text.lower() + '!'\n", "assert shout('hi') == 'HI!', f'HI! expected, not {shout(\"hi\")}'"),
    ("fact.py", "def factorial(n):\n    result = 0\n    for i in range(1, n + 1):\n        result *= i\n    return result\n", "assert factorial(4) == 24, f'4! is 24, not {factorial(4)}'"),
    ("merge.py", "def merge(a, b):\n    result = dict(b)\n    result.update(a)\n    return result\n", "assert merge({'x': 1}, {'x': 2}) == {'x': 2}, 'the second value wins'"),
    ("area.py", "def area(width, height):\n    return width + height\n", "assert area(3, 4) == 12, f'3 by 4 is 12, not {area(3, 4)}'"),
    ("even.py", "def evens(values):\n    return [v for v in values if v % 2]\n", "assert evens([1, 2, 3, 4]) == [2, 4], f'[2, 4] expected, not {evens([1, 2, 3, 4])}'"),
    ("span.py", "def span(values):\n    return max(values) + min(values)\n", "assert span([3, 9, 5]) == 6, f'9 less 3 is 6, not {span([3, 9, 5])}'"),
    ("slug.py", "def slug(title):\n    return title.lower().replace(' ', '_')\n", "assert slug('My Page') == 'my-page', f'my-page expected, not {slug(\"My Page\")}'"),
    ("last.py", "def last(items):\n    return items[0]\n", "assert last([1, 2, 3]) == 3, f'3 expected, not {last([1, 2, 3])}'"),
    ("leap.py", "def minutes(hours):\n    return hours * 24\n", "assert minutes(2) == 120, f'2 hours are 120 minutes, not {minutes(2)}'"),
    ("both.py", "def both(a, b):\n    return a or b\n", "assert both(True, False) is False, 'both must be true'"),
)  # fmt: skip
"""The last six were written after the prompt and its dialect, and never tuned on."""


def make_project(name: str, code: str, check: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trimtab-embedded-"))
    (folder / name).write_text(code)
    module = name.removesuffix(".py")
    (folder / "check.py").write_text(f"from {module} import *\n\n{check}\nprint('ok')\n")
    return folder


async def attempt(number: int) -> bool:
    name, code, check = TASKS[number]
    folder = make_project(name, code, check)
    before = (folder / "check.py").read_text()
    program = Path(sys.executable).with_name("trimtab")
    prompt = f"check.py fails. Find out why and fix {name}, then show that the check passes."
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("COPILOT_", "OPENAI_", "ANTHROPIC_"))
    }
    env["COPILOT_HOME"] = str(folder / ".home")
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        program, "-p", prompt, "-s", "--allow-all-tools", "--deadline", "2m", cwd=folder, env=env,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    await process.wait()
    passes = subprocess.run(
        [sys.executable, "check.py"], cwd=folder, capture_output=True, check=False
    )
    solved = passes.returncode == 0 and (folder / "check.py").read_text() == before
    print(
        f"{name:<12} {'solved' if solved else 'failed':<8} {time.monotonic() - began:6.1f} s",
        flush=True,
    )
    return solved


async def main() -> None:
    chosen = [int(number) for number in sys.argv[1:]] or range(len(TASKS))
    solved = [await attempt(number) for number in chosen]
    print(f"{sum(solved)} of {len(solved)} solved")


if __name__ == "__main__":
    asyncio.run(main())
