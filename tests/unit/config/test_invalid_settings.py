"""What is said about the value of a setting that is not valid."""

import msgspec
import pytest

from trimtab.config.invalid_settings import refuse
from trimtab.contracts.options import SandboxSettings


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"fence": "landlok"},
            (
                "The setting sandbox.fence has no value 'landlok'; use auto, landlock, "
                "bubblewrap, seatbelt or none."
            ),
        ),
        ({"network": "yes"}, "The setting sandbox.network has no value 'yes'; use off or on."),
        ({"denyed": []}, "There is no setting sandbox.denyed; did you mean denied?"),
        ({"enabled": "true"}, "The setting sandbox.enabled is not true or false; write one."),
        ({"denied": ".env"}, "The setting sandbox.denied is not a list; write one."),
        (
            {"allowedHosts": [5]},
            "The setting sandbox.allowedHosts has an entry that is not a text; correct it.",
        ),
        (5, "The setting sandbox is not an object; write one."),
    ],
)
def test_the_field_and_what_to_write_are_named(value: object, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, SandboxSettings)
    assert refuse("sandbox", SandboxSettings, caught.value).message == said


def test_all_fields_are_named_if_none_is_close() -> None:
    class One(msgspec.Struct, forbid_unknown_fields=True):
        seconds: int = 0

    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"xyz": 1}, One)
    said = refuse("one", One, caught.value).message
    assert said == "There is no setting one.xyz; use seconds."
