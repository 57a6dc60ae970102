"""The environment of child processes: without interactive programs and without our keys."""

from collections.abc import Collection, Mapping

QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "PSQL_PAGER": "cat",
    "AWS_PAGER": "",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SUDO_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
}

DISTURBING = ("BASH_ENV", "ENV", "PROMPT_COMMAND", "FORCE_COLOR", "CLICOLOR_FORCE", "OLDPWD")
"""They would run the person's code before every command, colour its output, or let `cd -` leave the
workspace."""

KEYS = (
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "COPILOT_SDK_AUTH_TOKEN",
    "COPILOT_CONNECTION_TOKEN",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "CO_API_KEY",
    "COHERE_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
)
"""Keys for models and GitHub, which the agent needs and its commands do not."""


def child_environment(
    env: Mapping[str, str], session_id: str, secrets: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables for a command; `secrets` names further variables to leave out."""
    dropped = {*DISTURBING, *find_keys(env), *secrets}
    kept = {name: env[name] for name in env if name not in dropped}
    return kept | QUIET | {"COPILOT_AGENT_SESSION_ID": session_id}


def find_keys(env: Mapping[str, str]) -> list[str]:
    """Return the names of variables that hold keys of this program."""
    return [name for name in env if name in KEYS or is_provider_key(name)]


def is_provider_key(name: str) -> bool:
    return name.startswith("COPILOT_PROVIDER_") and name.endswith(("KEY", "TOKEN", "SECRET"))
