"""The environment of commands."""

from trimtab.workspace.environment import child_environment


def test_keys_and_tokens_are_left_out() -> None:
    env = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
        "GH_TOKEN": "t",
        "GITHUB_TOKEN": "t",
        "COPILOT_GITHUB_TOKEN": "t",
        "COPILOT_SDK_AUTH_TOKEN": "t",
        "COPILOT_PROVIDER_API_KEY": "k",
        "COPILOT_PROVIDER_BEARER_TOKEN": "t",
        "COPILOT_PROVIDER_BASE_URL": "http://localhost",
        "MY_OWN": "s",
        "BASH_ENV": "/tmp/evil",
    }
    kept = child_environment(env, "id", secrets=["MY_OWN"])
    assert {name for name in kept if name in env} == {"PATH", "COPILOT_PROVIDER_BASE_URL"}
    assert kept["COPILOT_AGENT_SESSION_ID"] == "id"


def test_nothing_waits_for_a_person() -> None:
    kept = child_environment({"PAGER": "less", "EDITOR": "vim", "TERM": "xterm"}, "id")
    assert (kept["PAGER"], kept["EDITOR"], kept["TERM"]) == ("cat", "false", "dumb")
    assert "CI" not in kept
