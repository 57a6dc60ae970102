import json
from email.utils import formatdate

import pytest

from trimtab.contracts.errors import AuthenticationError
from trimtab.providers.errors import from_response, from_stream, redact, retry_after


def body(message: str, **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    ("status", "data", "category"),
    [
        (400, body("bad"), "invalid"),
        (422, b'{"detail":[{"loc":["body"],"msg":"field required"}]}', "invalid"),
        (401, body("no"), "auth"),
        (403, body("no"), "auth"),
        (402, body("pay"), "quota"),
        (404, body("The model `x` does not exist", code="model_not_found"), "not_found"),
        (404, b"404 page not found", "not_found"),
        (408, b"", "retryable"),
        (409, b"", "retryable"),
        (499, b"", "retryable"),
        (500, b"<html>oops</html>", "retryable"),
        (502, b"", "retryable"),
        (503, b"", "overloaded"),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', "overloaded"),
        (429, body("slow down", code="rate_limit_exceeded"), "rate_limit"),
        (429, body("You exceeded your current quota", code="insufficient_quota"), "quota"),
        (413, b"", "too_large"),
        (400, body("x", code="context_length_exceeded"), "too_large"),
        (400, body("prompt token count of 9 exceeds the limit of 8"), "too_large"),
        (400, body("prompt is too long: 210000 tokens > 200000 maximum"), "too_large"),
        (400, body("This model's maximum context length is 8192 tokens"), "too_large"),
        (400, body("Your input exceeds the context window of this model"), "too_large"),
        (400, body("the request exceeds the available context size"), "too_large"),
        (400, body("The input token count (9) exceeds the maximum number"), "too_large"),
        (400, body("This model's maximum prompt length is 131072"), "too_large"),
        (400, body("Please reduce the length of the messages or completion."), "too_large"),
        (400, body("x", code="content_filter"), "refused"),
        (307, b"", "invalid"),
        (418, b"", "invalid"),
    ],
)
def test_a_status_and_body_have_a_category(status: int, data: bytes, category: str) -> None:
    error = from_response(status, {}, data)
    assert (error.category, error.status) == (category, status)
    assert error.message.endswith(".")
    assert "; " in error.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (body("Try less."), "Try less"),
        (b'{"type":"error","error":{"type":"invalid_request_error","message":"Bad"}}', "Bad"),
        (b'{"error":"model is loading"}', "model is loading"),
        (b'{"message":"Not here"}', "Not here"),
        (b'{"detail":"Missing"}', "Missing"),
        (b'[{"error":{"code":400,"message":"Gemini says","status":"INVALID_ARGUMENT"}}]', "Gemini"),
        (b"plain words", "plain words"),
        (b'"quoted words"', "quoted words"),
    ],
)
def test_the_services_own_words_are_in_the_message(data: bytes, words: str) -> None:
    assert words in from_response(400, {}, data).message


def test_markup_and_long_texts_do_not_flood_the_message() -> None:
    assert "<" not in from_response(502, {}, b"<html>bad gateway</html>").message
    assert len(from_response(400, {}, b"x" * 100_000).message) < 600
    assert "\n" not in from_response(400, {}, b"a\nb\nc").message


def test_bad_credentials_have_their_own_class() -> None:
    error = from_response(401, {"x-request-id": "r-1"}, body("bad key"))
    assert isinstance(error, AuthenticationError)
    assert (error.exit_code, error.request_id) == (7, "r-1")


def test_keys_never_reach_a_message() -> None:
    key = "corp-key-123456"
    text = f"Incorrect API key provided: {key} and sk-proj-abcdef123456 and Bearer abcdefghijkl"
    message = from_response(401, {}, body(text), secrets=[key]).message
    for secret in (key, "sk-proj", "abcdefghijkl"):
        assert secret not in message
    assert redact("a b", ["b"]) == "a b"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(900_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, now=1_000_000) == seconds


@pytest.mark.parametrize(
    ("value", "category"),
    [
        ({"type": "overloaded_error", "message": "x"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "x"}, "rate_limit"),
        ({"type": "authentication_error", "message": "x"}, "auth"),
        ({"code": 502, "message": "x"}, "retryable"),
        ({"code": 429, "message": "x"}, "rate_limit"),
        ({"type": "api_error", "message": "x"}, "retryable"),
        ({"error": {"code": "insufficient_quota", "message": "x"}}, "quota"),
        ("boom", "retryable"),
        (["odd"], "retryable"),
    ],
)
def test_an_error_inside_a_stream_has_a_category(value: object, category: str) -> None:
    assert from_stream(value).category == category
