"""Random edits of files in every newline style and encoding, checked byte by byte.

Run as a program with the number of cases: `python tests/properties/edit_cases.py 50000`.
"""

import random
import sys

import msgspec

from trimtab.tools.splice import NO_FINAL_NEWLINE, Splice, plan_edit

NEWLINES = {"lf": ["\n"], "crlf": ["\r\n"], "cr": ["\r"], "mixed": ["\n", "\r\n", "\r"]}
WORDS = {
    "utf-8": ["naïve", "日本", "🚀", "x", "ß", "plain"],
    "utf-8-bom": ["naïve", "日本", "🚀", "x", "ß", "plain"],
    "utf-16-le": ["naïve", "日本", "🚀", "x", "plain"],
    "utf-16-be": ["naïve", "日本", "🚀", "x", "plain"],
    "cp1252": ["café", "“quoted”", "€5", "x", "plain", "déjà"],
    "shift_jis": ["こんにちは", "カタカナ", "表示", "ソース", "x", "plain"],
    "latin-1": ["café", "straße", "x", "plain", "\x85", "ñandú"],
    "binary-tail": ["naïve", "x", "plain", "text"],
}
BOMS = {"utf-8-bom": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
TAIL = bytes(range(128, 256)) + b"\0\1\2\xff\xfe"
PLACES = ("first", "middle", "last")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One file and one edit: `before + old + after` are its bytes."""

    before: bytes
    old: bytes
    after: bytes
    old_str: str
    new_str: str
    encoding: str
    styles: frozenset[str]


def make_case(seed: int) -> Case:
    """A case of the matrix newline style x encoding x place, by number."""
    rng = random.Random(seed)
    style = list(NEWLINES)[seed % 4]
    kind = list(WORDS)[seed // 4 % len(WORDS)]
    place = PLACES[seed // 32 % 3]
    codec = {"utf-8-bom": "utf-8", "binary-tail": "utf-8"}.get(kind, kind)
    count = rng.randint(1, 12)
    # The number makes each line unique; the first word shows the encoding, without which there is none.
    lines = [
        f"{i:03d} {' '.join([*WORDS[kind][:1], *rng.choices(WORDS[kind], k=rng.randint(0, 4))])};"
        for i in range(count)
    ]
    ends = [rng.choice(NEWLINES[style]) for _ in lines]
    if rng.random() < 0.4:
        ends[-1] = ""
    at = {"first": 0, "middle": count // 2, "last": count - 1}[place]
    height = rng.randint(1, min(3, count - at))
    chunk = "".join(
        a + b for a, b in zip(lines[at : at + height], ends[at : at + height], strict=True)
    )
    if rng.random() < 0.6:
        chunk = chunk.rstrip("\r\n")
    before = "".join(a + b for a, b in zip(lines[:at], ends[:at], strict=True))
    after = ("".join(a + b for a, b in zip(lines, ends, strict=True)))[len(before) + len(chunk) :]
    new = [
        " ".join(rng.choices(WORDS[kind], k=rng.randint(1, 3))) for _ in range(rng.randint(0, 4))
    ]
    joined = "\n".join(new) + ("\n" if new and rng.random() < 0.5 else "")
    old_str = chunk.replace("\r\n", "\n").replace("\r", "\n")
    return Case(
        before=BOMS.get(kind, b"") + before.encode(codec),
        old=chunk.encode(codec),
        after=after.encode(codec) + (TAIL if kind == "binary-tail" else b""),
        old_str=old_str.replace("\n", "\r\n") if rng.random() < 0.1 else old_str,
        new_str=joined,
        encoding=codec,
        styles=frozenset(NEWLINES[style]),
    )


def check(case: Case) -> None:
    """The edit is made, and not one byte outside of it differs."""
    data = case.before + case.old + case.after
    if case.old_str.replace("\r\n", "\n") == case.new_str:
        return
    plan = plan_edit(data, case.old_str, case.new_str)
    assert isinstance(plan, Splice), plan
    assert plan.data.startswith(case.before)
    assert plan.data.endswith(case.after)
    middle = plan.data[len(case.before) : len(plan.data) - len(case.after)]
    text = middle.decode(case.encoding)
    assert text.replace("\r\n", "\n").replace("\r", "\n") == case.new_str
    used = set(text.replace("\r\n", "N").replace("\r", "R").replace("\n", "L")) & set("NRL")
    check_hunk(case, plan)
    allowed = {"\r\n": "N", "\r": "R", "\n": "L"}
    if case.before.count(b"\n") or case.before.count(b"\r") or "\n" in case.old_str:
        assert used <= {allowed[style] for style in case.styles}, (used, case)


def check_hunk(case: Case, plan: Splice) -> None:
    """The lines said to be removed and added are those of the file before and after."""
    before, after = case.before.decode(case.encoding), case.after.decode(case.encoding, "replace")
    melted = before.endswith("\r") and after.startswith("\n") and not case.new_str
    # Latin-1 is shown as Windows-1252: the same bytes, but other characters in a few places.
    if melted or case.after.endswith(TAIL) or case.encoding == "latin-1":
        return
    sides = ((case.before + case.old + case.after, plan.hunk.removed), (plan.data, plan.hunk.added))
    for data, said in sides:
        text = data.decode(case.encoding).removeprefix("\ufeff")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        shown = [line.removesuffix(NO_FINAL_NEWLINE) for line in said]
        assert lines[plan.hunk.line - 1 :][: len(shown)] == shown, (case, plan.hunk)


if __name__ == "__main__":
    total = int(sys.argv[1])
    for number in range(total):
        check(make_case(number))
    print(f"{total} edits, 0 differing bytes outside the hunk")
