"""The line of questions: which key answers, and which belongs to the draft."""

from trimtab.transports.tui.asking import Asking
from trimtab.transports.tui.questions import GUARD, Asked, Choice


class Person:
    """Reads questions and presses keys; `answers` is what reached the agent."""

    def __init__(self, *ids: str) -> None:
        self.answers: list[tuple[str, str]] = []
        self.asking = Asking(lambda _: None)
        for name in ids:
            self.ask(name)

    def ask(self, name: str) -> None:
        asked = Asked(
            id=name,
            title=f"{name}?",
            kind="permission",
            on_escape="no",
            choices=(
                Choice(label="yes", keys=("1", "y"), value="yes"),
                Choice(label="no", keys=("4", "n"), value="no"),
            ),
        )

        def answer(value: str) -> bool:
            self.answers.append((name, value))
            return True

        self.asking.put(asked, answer)

    def sees(self, now: float) -> None:
        self.asking.on_shown(now)

    def escape(self, arrives: float) -> None:
        """Press Esc; its action runs later, when no sequence can follow any more."""
        self.asking.on_key(arrives)
        if self.asking.may_answer:
            self.asking.escape()

    def moves_down(self, now: float) -> None:
        self.asking.on_key(now)
        assert self.asking.may_answer
        self.asking.move(1)

    def enters(self, now: float) -> None:
        self.asking.on_key(now)
        if self.asking.may_answer:
            self.asking.confirm()


def test_escape_answers_a_question_that_has_stood_long_enough() -> None:
    person = Person("first")
    person.sees(10.0)
    person.escape(10.0 + GUARD)
    assert person.answers == [("first", "no")]


def test_escape_answers_nothing_before_the_guard_has_passed() -> None:
    person = Person("first")
    person.sees(10.0)
    person.escape(10.0 + GUARD / 2)
    assert person.answers == []


def test_escape_answers_nothing_shortly_after_another_key() -> None:
    person = Person("first")
    person.sees(10.0)
    person.asking.on_key(11.0)
    person.escape(11.0 + GUARD / 2)
    assert person.answers == []


def test_a_key_never_answers_a_question_that_came_after_it() -> None:
    person = Person("first", "second")
    person.sees(10.0)
    person.asking.on_key(11.0)
    assert person.asking.may_answer
    person.asking.withdraw("first")
    assert not person.asking.may_answer


def test_a_choice_is_marked_and_taken_without_a_pause_between_the_keys() -> None:
    person = Person("first")
    person.sees(10.0)
    person.moves_down(11.0)
    person.moves_down(11.1)
    person.enters(11.2)
    assert person.answers == [("first", "no")]


def test_a_key_of_the_draft_holds_up_the_marked_choice() -> None:
    person = Person("first")
    person.sees(10.0)
    person.moves_down(11.0)
    person.asking.on_key(11.1)  # a letter of the draft
    person.enters(11.2)
    assert person.answers == []
