"""The circuit breaker: opens after failures in a row, lets one call try, then more and more."""

from trimtab.providers.breaker import MAX_RETRY_AFTER, Breaker, breaker_for


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.leave(breaker.ticket, ok=False)


def test_it_opens_only_after_several_failures_in_a_row() -> None:
    breaker = Breaker(threshold=3, pause=60)
    fail(breaker, 2)
    breaker.leave(breaker.ticket, ok=True)
    fail(breaker, 2)
    assert breaker.enter() == 0
    fail(breaker)
    assert breaker.open
    assert breaker.enter() > 10


def test_one_call_tries_and_each_success_lets_twice_as_many_follow() -> None:
    breaker = Breaker(threshold=1, pause=0.0)
    fail(breaker)
    assert breaker.enter() == 0
    ticket = breaker.ticket
    breaker._pause = 1.0
    assert breaker.enter() > 0, "somebody is trying already"
    breaker.leave(ticket, ok=True)
    assert [breaker.enter() for _ in range(2)] == [0, 0]
    assert breaker.enter() > 0
    for _ in range(4):
        breaker.leave(ticket, ok=True)
    assert not breaker.open


def test_a_try_that_fails_closes_the_door_again_for_longer() -> None:
    breaker = Breaker(threshold=1, pause=0.0)
    fail(breaker)
    assert breaker.enter() == 0
    breaker._pause = 1.0
    breaker.leave(breaker.ticket, ok=False)
    assert breaker.enter() > 1


def test_failures_of_calls_made_before_it_opened_count_once() -> None:
    breaker = Breaker(threshold=2, pause=1.0)
    early = [breaker.ticket for _ in range(25)]
    for ticket in early:
        breaker.leave(ticket, ok=False)
    assert 0 < breaker.enter() < 1.3, "one opening, not twenty-four"


def test_the_services_own_wish_wins_when_it_is_longer() -> None:
    breaker = Breaker(threshold=1, pause=0.01)
    breaker.leave(breaker.ticket, ok=False, retry_after=30)
    assert breaker.enter() > 25


def test_the_services_own_wish_has_a_limit() -> None:
    breaker = Breaker(threshold=1, pause=0.01)
    breaker.leave(breaker.ticket, ok=False, retry_after=1e9)
    assert breaker.enter() <= MAX_RETRY_AFTER


def test_a_cancelled_try_gives_its_place_to_another() -> None:
    breaker = Breaker(threshold=1, pause=0.0)
    fail(breaker)
    assert breaker.enter() == 0
    breaker.leave(breaker.ticket, ok=None)
    assert breaker.open
    assert breaker.enter() == 0


def test_there_is_one_for_each_origin() -> None:
    assert breaker_for("http://a") is breaker_for("http://a")
    assert breaker_for("http://a") is not breaker_for("http://b")
