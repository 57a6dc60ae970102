"""The GitHub accounts a person signed in to, and their tokens.

Tokens are kept in the keyring of the operating system if the `keyring` package can reach one, else
in a file that only its owner may read.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec

from trimtab.config.files import format_json, read_regular, update_file
from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import ConfigurationError

SERVICE = "trimtab"
"""The name under which tokens are kept in the keyring."""
GITHUB = "https://github.com"


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An account. `token` is empty if the keyring keeps it."""

    login: str
    host: str = GITHUB
    token: str = ""

    @property
    def id(self) -> str:
        return f"{self.host}/{self.login}"


class _File(msgspec.Struct):
    accounts: tuple[Account, ...] = ()
    """The current account comes first."""


class Accounts:
    """The stored accounts of one home."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        self._path = home.accounts
        self._env = env

    def list(self) -> tuple[Account, ...]:
        """Return the accounts, the current one first. Raises `ConfigurationError`."""
        try:
            return self._parse(read_regular(self._path)).accounts
        except FileNotFoundError:
            return ()

    def current(self) -> Account | None:
        return next(iter(self.list()), None)

    def token(self, account: Account) -> str:
        """Return the token of an account; empty if the keyring no longer has it."""
        if account.token:
            return account.token
        keyring = find_keyring(self._env)
        return (keyring.read(account.id) or "") if keyring else ""

    def add(self, account: Account) -> bool:
        """Store an account and make it the current one; return True if the keyring keeps it."""
        keyring = find_keyring(self._env)
        if keyring is not None:
            keyring.write(account.id, account.token)
            account = msgspec.structs.replace(account, token="")
        self._change(lambda others: (account, *without(others, account.id)))
        return keyring is not None

    def remove(self, account_id: str) -> None:
        """Forget an account and its token."""
        keyring = find_keyring(self._env)
        if keyring is not None:
            keyring.delete(account_id)
        self._change(lambda known: without(known, account_id))

    def _change(self, change: Callable[[Sequence[Account]], tuple[Account, ...]]) -> None:
        def write(before: bytes | None) -> bytes:
            known = self._parse(before).accounts if before else ()
            return format_json(msgspec.to_builtins(_File(accounts=change(known))))

        update_file(self._path, write)

    def _parse(self, data: bytes) -> _File:
        try:
            return msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{self._path} cannot be read ({error}); correct it, or delete it to sign in anew."
            ) from None


def without(accounts: Sequence[Account], account_id: str) -> tuple[Account, ...]:
    """Return all accounts but one."""
    return tuple(account for account in accounts if account.id != account_id)


def find_stored_token(env: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the token and login of the current account, or None. Imports nothing if there is none.

    `--no-auto-login` ignores stored accounts.
    """
    if env.get("TRIMTAB_NO_LOGIN"):
        return None
    home = find_home(env)
    if not os.path.exists(home.accounts):
        return None
    accounts = Accounts(home, env)
    account = accounts.current()
    token = accounts.token(account) if account else ""
    return (token, account.login) if account and token else None


class Keyring:
    """The secrets of this program in the keyring of the operating system, by name.

    Every method raises `ConfigurationError` if the keyring refuses, for example while it is locked.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def read(self, name: str) -> str | None:
        with self._explained():
            secret: str | None = self._module.get_password(SERVICE, name)
            return secret

    def write(self, name: str, secret: str) -> None:
        with self._explained():
            self._module.set_password(SERVICE, name, secret)

    def delete(self, name: str) -> None:
        """Delete a secret, if there is one."""
        with self._explained():
            if self._module.get_password(SERVICE, name) is not None:
                self._module.delete_password(SERVICE, name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._module.errors.KeyringError as error:
            raise ConfigurationError(
                f"The keyring cannot be used ({error or type(error).__name__}); unlock it, or set "
                "COPILOT_DISABLE_KEYTAR=1 to keep tokens in a file that only you can read."
            ) from None


def find_keyring(env: Mapping[str, str]) -> Keyring | None:
    """Return the keyring if the package `keyring` is installed and can reach one, else None."""
    if env.get("COPILOT_DISABLE_KEYTAR") or find_spec("keyring") is None:
        return None
    module = import_module("keyring")
    return Keyring(module) if module.get_keyring().priority > 0 else None
