"""Whatever a file holds, an edit changes nothing but the text it names."""

from hypothesis import given, settings
from hypothesis import strategies as st

from properties.edit_cases import check, make_case
from trimtab.tools.splice import Splice, plan_edit

TOKEN = b"<<TOKEN>>"


@settings(max_examples=2000)
@given(st.integers(min_value=0, max_value=10**9))
def test_no_byte_outside_the_hunk_differs_in_any_encoding_and_newline_style(seed: int) -> None:
    check(make_case(seed))


@settings(max_examples=500)
@given(
    st.binary(max_size=200),
    st.binary(max_size=200),
    st.text(alphabet="ab \n", max_size=20),
)
def test_arbitrary_bytes_around_the_hunk_survive(before: bytes, after: bytes, new: str) -> None:
    data = before + TOKEN + after
    plan = plan_edit(data, TOKEN.decode(), new)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    assert isinstance(plan, Splice)
    assert plan.data.startswith(before)
    assert plan.data.endswith(after)
    assert len(plan.data) >= len(before) + len(after) + len(new)
