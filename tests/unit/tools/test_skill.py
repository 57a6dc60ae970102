"""The skill tool helps to find a skill that no list names."""

from toolkit import Bench
from trimtab.contracts.customization import Skill
from trimtab.tools.skill.tool import MAX_SUGGESTED, SkillTool


def offer(bench: Bench, descriptions: dict[str, str]) -> None:
    bench.tools["skill"] = SkillTool(
        {
            name: Skill(name=name, path=f"/{name}", description=text, source="user")
            for name, text in descriptions.items()
        }
    )


async def test_words_find_the_skills_that_have_most_of_them(bench: Bench) -> None:
    many = {f"other-{number}": "Writes reports" for number in range(500)}
    offer(bench, {**many, "invoices": "Checks prices of invoices", "pay": "Sends Invoices"})
    told = await bench.text("skill", skill="check the prices of an invoice")
    assert told.split("\n")[1:] == [
        "- invoices: Checks prices of invoices",
        "- pay: Sends Invoices",
    ]
    many_told = await bench.text("skill", skill="reports")
    assert many_told.count("\n") == MAX_SUGGESTED


async def test_without_a_word_in_common_the_first_names_are_given(bench: Bench) -> None:
    offer(bench, {"b": "x", "a": "y"})
    told = await bench.call("skill", skill="deploy_now")
    assert told.text == "Skill not found: deploy_now. Skills you can load: a, b."
    assert told.kind == "failure"
    offer(bench, {})
    assert "Skills you can load: none." in await bench.text("skill", skill="deploy_now")
