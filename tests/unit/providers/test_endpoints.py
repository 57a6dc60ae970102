import pytest

from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.providers.addresses import join_url
from trimtab.providers.auth import Key, auth_header
from trimtab.providers.endpoints import ProviderChoice, from_environment

BASE = {"COPILOT_PROVIDER_BASE_URL": "http://localhost:1234/v1"}


def choose(**variables: str) -> ProviderChoice:
    choice = from_environment(BASE | {f"COPILOT_PROVIDER_{k}": v for k, v in variables.items()})
    assert choice is not None
    return choice


def test_nothing_set_means_no_choice() -> None:
    assert from_environment({}) is None
    assert from_environment({"COPILOT_PROVIDER_BASE_URL": "", "OPENAI_API_KEY": ""}) is None


def test_a_base_url_alone_is_an_openai_compatible_service_without_a_key() -> None:
    choice = choose()
    assert (choice.name, choice.wire, choice.auth) == ("openai", "openai-chat", "none")


def test_everything_about_a_service_can_be_set() -> None:
    choice = choose(
        TYPE="OpenAI",
        API_KEY=" k ",
        WIRE_API="responses",
        HEADERS="X-Team: blue\n\nx-b:c:d",
        MODEL_ID="gpt-5",
        WIRE_MODEL="prod-gpt",
        MAX_PROMPT_TOKENS="1000",
        MAX_OUTPUT_TOKENS="50",
    )
    assert (choice.wire, choice.auth) == ("openai-responses", "bearer")
    assert choice.headers == {"x-team": "blue", "x-b": "c:d"}
    assert (choice.model, choice.wire_model) == ("gpt-5", "prod-gpt")
    assert (choice.max_prompt_tokens, choice.max_output_tokens) == (1000, 50)


def test_the_model_is_the_id_else_the_general_choice_else_the_wire_model() -> None:
    assert choose(WIRE_MODEL="w").model == "w"
    general = from_environment(BASE | {"COPILOT_MODEL": "m", "COPILOT_PROVIDER_WIRE_MODEL": "w"})
    assert general is not None
    assert general.model == "m"


@pytest.mark.parametrize(
    ("variables", "auth", "header"),
    [
        ({"API_KEY": "k"}, "bearer", {"authorization": "Bearer k"}),
        ({"API_KEY": "k", "TYPE": "azure"}, "api-key", {"api-key": "k"}),
        ({"API_KEY": "k", "TYPE": "anthropic"}, "x-api-key", {"x-api-key": "k"}),
        ({"BEARER_TOKEN": "k", "TYPE": "anthropic"}, "bearer", {"authorization": "Bearer k"}),
        ({"BEARER_TOKEN": "k", "API_KEY": "other"}, "bearer", {"authorization": "Bearer k"}),
        ({"API_KEY_COMMAND": "echo k", "TYPE": "azure"}, "api-key", {"api-key": "k"}),
    ],
)
async def test_the_key_goes_into_the_header_of_its_kind(
    variables: dict[str, str], auth: str, header: dict[str, str]
) -> None:
    choice = choose(**variables)
    assert choice.auth == auth
    assert auth_header(choice.auth, await choice.key.reveal()) == header


def test_azure_addresses_deployments_by_date_and_its_current_interface_without() -> None:
    dated = choose(TYPE="azure", AZURE_API_VERSION="2024-10-21")
    assert dated.path == "/openai/deployments/{model}/chat/completions?api-version=2024-10-21"
    assert join_url("https://r.example", dated.path, "my model") == (
        "https://r.example/openai/deployments/my%20model/chat/completions?api-version=2024-10-21"
    )
    assert choose(TYPE="azure").path == "/openai/v1/chat/completions"
    assert choose(TYPE="azure", WIRE_API="responses").path == "/openai/v1/responses"
    full = from_environment(
        {
            "COPILOT_PROVIDER_BASE_URL": "https://r.example/openai/v1/",
            "COPILOT_PROVIDER_TYPE": "azure",
        }
    )
    assert full is not None
    assert full.path is None


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("http://h/v1", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1?key=a", "/responses", "http://h/v1/responses?key=a"),
        ("http://h?key=a", "/x?b=c", "http://h/x?b=c&key=a"),
    ],
)
def test_base_and_path_are_joined_as_people_write_them(base: str, path: str, expected: str) -> None:
    assert join_url(base, path, "m") == expected


def test_public_services_are_found_by_their_own_variables() -> None:
    openai = from_environment({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    assert openai is not None
    assert (openai.name, openai.base_url) == ("openai", "https://api.openai.com/v1")
    assert openai.limit_field == "max_completion_tokens"
    anthropic = from_environment(
        {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://localhost:1", "COPILOT_MODEL": "m"}
    )
    assert anthropic is not None
    assert (anthropic.wire, anthropic.base_url) == ("anthropic-messages", "http://localhost:1")
    assert anthropic.headers["anthropic-version"]
    assert anthropic.model == "m"


@pytest.mark.parametrize(
    "variables",
    [
        {"TYPE": "bedrock"},
        {"WIRE_API": "websocket"},
        {"MAX_OUTPUT_TOKENS": "many"},
        {"MAX_PROMPT_TOKENS": "0"},
        {"HEADERS": "no colon here"},
    ],
)
def test_a_bad_value_is_named_with_what_to_do(variables: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"COPILOT_PROVIDER_.*(set it to|write)"):
        choose(**variables)


def test_a_key_shows_neither_in_the_choice_nor_in_itself() -> None:
    assert "hunter2" not in repr(choose(API_KEY="hunter2"))
    assert "hunter2" not in repr(choose(API_KEY_COMMAND="echo hunter2"))


@pytest.mark.parametrize("command", ["exit 3", "true", "exec cat /nonexistent-key"])
async def test_a_command_that_gives_no_key_is_named(command: str) -> None:
    with pytest.raises(AuthenticationError, match=r"MY_COMMAND printed no key.*run it yourself"):
        await Key(command=command, source="MY_COMMAND").reveal()
