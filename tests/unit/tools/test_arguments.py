"""Arguments of tools are parsed, repaired and checked."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import ToolResult
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import builtin_tools

SPEC = ToolSpec(
    name="sample",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "ratio": {"type": "number"},
            "force": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "range": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            "mode": {"type": "string", "enum": ["sync", "async"]},
            "shellId": {"type": "string"},
            "options": {"type": "object", "properties": {"deep": {"type": "integer"}}},
        },
        "required": ["path"],
    },
)


def read(text: str) -> dict[str, Any]:
    value = read_arguments(SPEC, text)
    assert isinstance(value, dict), value
    return value


def refuse(text: str, spec: ToolSpec = SPEC) -> ToolResult:
    value = read_arguments(spec, text)
    assert isinstance(value, ToolResult), value
    assert value.kind == "failure"
    assert value.text.startswith("ERROR: Your input to the tool was invalid")
    assert spec.name in value.text
    return value


@pytest.mark.parametrize(
    ("given_value", "wanted"),
    [
        ('"count": 5', {"count": 5}),
        ('"count": "5"', {"count": 5}),
        ('"count": 5.0', {"count": 5}),
        ('"ratio": "0.5"', {"ratio": 0.5}),
        ('"force": "true"', {"force": True}),
        ('"force": "False"', {"force": False}),
        ('"shellId": 5', {"shellId": "5"}),
        ('"shell_id": "a"', {"shellId": "a"}),
        ('"names": "a"', {"names": ["a"]}),
        ('"names": ["a", 5]', {"names": ["a", "5"]}),
        ('"names": "[\\"a\\", \\"b\\"]"', {"names": ["a", "b"]}),
        ('"range": "[2, 40]"', {"range": [2, 40]}),
        ('"range": ["2", 40]', {"range": [2, 40]}),
        ('"mode": null', {}),
        ('"options": "{\\"deep\\": \\"1\\"}"', {"options": {"deep": 1}}),
        ('"unheard": 1', {}),
    ],
)
def test_near_misses_are_repaired(given_value: str, wanted: dict[str, Any]) -> None:
    assert read(f'{{"path": "x", {given_value}}}') == {"path": "x", **wanted}


def test_arguments_put_into_a_string_again_are_taken_out() -> None:
    assert read('"{\\"path\\": \\"x\\"}"') == {"path": "x"}


def test_raw_newlines_in_strings_are_accepted() -> None:
    assert read('{"path": "a\nb"}') == {"path": "a\nb"}


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("{}", '"path": Required'),
        ("", '"path": Required'),
        ('{"path": null}', '"path": Required'),
        ('{"path": ["x"]}', '"path": Expected string, received array'),
        ('{"path": "x", "count": "five"}', '"count": Expected integer, received string'),
        ('{"path": "x", "count": 0}', '"count": Must be at least 1'),
        ('{"path": "x", "count": 10}', '"count": Must be at most 9'),
        ('{"path": "x", "count": true}', '"count": Expected integer, received boolean'),
        ('{"path": "x", "range": [1]}', '"range": Must have at least 2 items'),
        ('{"path": "x", "names": ["a", {}]}', '"names.1": Expected string, received object'),
        (
            '{"path": "x", "mode": "later"}',
            "\"mode\": Invalid enum value. Expected 'sync' | 'async', received 'later'",
        ),
        (
            '{"path": "x", "options": {"deep": []}}',
            '"options.deep": Expected integer, received array',
        ),
    ],
)
def test_what_cannot_be_repaired_is_named(text: str, summary: str) -> None:
    refusal = refuse(text)
    assert refusal.summary == summary
    assert summary in refusal.text


def test_the_model_learns_what_was_expected_and_what_was_unknown() -> None:
    text = refuse('{"file_path": "x"}').text
    assert "Path of the file" in text
    assert 'Unknown fields: "file_path"' in text


@pytest.mark.parametrize(
    "text", ['{"path": "x', "{path: x}", "[1]", "7", '{"path": "x"}}', '{"path": "\\ud800"}']
)
def test_malformed_json_is_reported_as_such(text: str) -> None:
    refusal = refuse(text)
    assert "malformed JSON" in refusal.text
    assert refusal.summary is not None
    assert refusal.summary.startswith("Malformed JSON")


def test_other_schemas_are_checked_by_a_full_validator() -> None:
    spec = ToolSpec(
        name="full",
        description="",
        parameters={
            "type": "object",
            "properties": {"n": {"type": "integer", "multipleOf": 2}, "s": {"pattern": "^a"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    )
    assert read_arguments(spec, '{"n": 4, "s": "abc"}') == {"n": 4, "s": "abc"}
    assert read_arguments(spec, '{"n": "4"}') == {"n": 4}
    assert '"n"' in str(refuse('{"n": 3}', spec).summary)
    assert "required" in str(refuse("{}", spec).summary)


def test_a_schema_that_points_elsewhere_is_not_fetched() -> None:
    spec = ToolSpec(name="far", description="", parameters={"$ref": "http://127.0.0.1:9/schema"})
    assert read_arguments(spec, '{"n": 4}') == {"n": 4}


def test_freeform_input_is_passed_on() -> None:
    spec = ToolSpec(name="patch", description="", format={"type": "grammar"})
    assert read_arguments(spec, "*** Begin") == {"input": "*** Begin"}


STRICT: dict[str, st.SearchStrategy[Any]] = {
    "path": st.text(max_size=20),
    "count": st.integers(1, 9),
    "ratio": st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6),
    "force": st.booleans(),
    "names": st.lists(st.text(max_size=5), max_size=3),
    "range": st.lists(st.integers(-9, 9), min_size=2, max_size=4),
    "mode": st.sampled_from(["sync", "async"]),
    "shellId": st.text(alphabet="abc", max_size=5),
    "options": st.fixed_dictionaries({"deep": st.integers()}),
}
RIGHT = st.fixed_dictionaries(
    {"path": STRICT["path"]},
    optional={name: values for name, values in STRICT.items() if name != "path"},
)


def miss(draw: Any, name: str, value: Any) -> Any:
    """A value as a careless model writes it; there is one thing only it can mean."""
    ways = [value, json.dumps(value)] if not isinstance(value, str) else [value]
    if isinstance(value, int) and not isinstance(value, bool):
        ways += [float(value), json.dumps(float(value))] if abs(value) < 2**50 else []
    if isinstance(value, bool):
        ways += [str(value)]
    if isinstance(value, list) and len(value) == 1 and name == "names":
        ways += value if not _is_json(value[0]) else []
    if name == "range":
        ways += [[str(item) for item in value], [float(item) for item in value]]
    return draw(st.sampled_from(ways))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(RIGHT)
def test_what_is_right_stays_as_it_is(args: dict[str, Any]) -> None:
    assert read(json.dumps(args)) == args


@given(RIGHT, st.data())
def test_what_is_nearly_right_is_read_as_what_was_meant(args: dict[str, Any], data: Any) -> None:
    given_args = {name: miss(data.draw, name, value) for name, value in args.items()}
    left_out = data.draw(st.sets(st.sampled_from(sorted(STRICT.keys() - args.keys() or {"x"}))))
    given_args |= dict.fromkeys(left_out)
    given_args |= data.draw(st.dictionaries(st.sampled_from(["unheard", "why"]), st.integers()))
    text = json.dumps(given_args)
    if data.draw(st.booleans()):
        text = json.dumps(text)
    assert read(text) == args


WRONG: dict[str, st.SearchStrategy[Any]] = {
    "path": st.lists(st.integers()) | st.booleans(),
    "count": st.floats(1.1, 1.9) | st.sampled_from(["", "five", "5 or 6", [5], True, "true", 1e99]),
    "ratio": st.sampled_from(["", "a half", "true", [0.5], False]),
    "force": st.integers() | st.sampled_from(["", "yes", "no", "on", "1", [True]]),
    "range": st.sampled_from(["1-2", "5", 5, [1], ["a", "b"], "[1]"]),
    "mode": st.sampled_from(["SYNC", "", "soon", "sync, async"]),
    "options": st.sampled_from(["deep", "[1]", 5, ["deep"]]),
}


@given(RIGHT, st.sampled_from(sorted(WRONG)), st.data())
def test_what_could_mean_anything_is_refused_by_name(
    args: dict[str, Any], name: str, data: Any
) -> None:
    refusal = refuse(json.dumps({**args, name: data.draw(WRONG[name])}))
    assert f'"{name}' in str(refusal.summary)
    assert f'"{name}' in refusal.text


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_gives_arguments_or_a_failure(text: str) -> None:
    value = read_arguments(SPEC, text)
    assert isinstance(value, dict) or value.kind == "failure"


def test_the_built_in_schemas_need_no_validator_and_stay_small() -> None:
    import msgspec

    from trimtab.tools.schema import is_simple

    tools = builtin_tools()
    assert all(is_simple(tool.spec.parameters) for tool in tools.values())
    first_hands = [tool.spec for tool in tools.values()][:10]
    assert len(msgspec.json.encode(first_hands)) < 9 * 1024


@pytest.mark.parametrize(("more", "kept"), [({}, {}), ({"additionalProperties": True}, {"b": 1})])
def test_unknown_fields_are_kept_only_if_the_schema_says_so(
    more: dict[str, Any], kept: dict[str, Any]
) -> None:
    from trimtab.tools.schema import fit, is_simple

    schema = {"type": "object", "properties": {"a": {"type": "string"}}, **more}
    assert is_simple(schema)
    assert fit(schema, {"a": "x", "b": 1}, "", []) == {"a": "x", **kept}
    assert not is_simple({**schema, "additionalProperties": {"type": "string"}})


@pytest.mark.parametrize("half", ["\\ud83d", "\\ud83dx", "\\ude00"])
def test_half_of_a_surrogate_pair_is_called_that(half: str) -> None:
    assert "surrogate" in refuse(f'{{"path": "{half}"}}').text


def test_what_is_required_and_has_a_default_may_be_left_out() -> None:
    from trimtab.tools.schema import Problem, fit

    schema = {"properties": {"a": {"type": "string", "default": ""}}, "required": ["a", "b"]}
    problems: list[Problem] = []
    assert fit(schema, {"a": None}, "", problems) == {"a": ""}
    assert [problem.short for problem in problems] == ['"b": Required']
