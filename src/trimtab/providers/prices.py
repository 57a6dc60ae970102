"""List prices of well-known models, from a dated table that a person can override."""

import os
import re
from collections.abc import Mapping

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.provider import Price

VARIABLE = "TRIMTAB_PRICES"
_BUNDLED = os.path.join(os.path.dirname(__file__), "prices.json")


class _Row(msgspec.Struct, frozen=True, rename="camel"):
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    models: dict[str, _Row]
    as_of: str = ""


def price_of(model: str, env: Mapping[str, str]) -> Price | None:
    """Return the price of a model, or None. The table named by TRIMTAB_PRICES takes precedence."""
    for path in filter(None, (env.get(VARIABLE), _BUNDLED)):
        row = _find(model, _load(path).models)
        if row is not None:
            return Price(
                input=row.input,
                output=row.output,
                cache_read=row.cache_read,
                cache_write=row.cache_write,
            )
    return None


def _load(path: str) -> _Table:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=_Table)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            f"The price table {path} cannot be read ({error}); correct it or unset {VARIABLE}."
        ) from error


def _find(model: str, rows: Mapping[str, _Row]) -> _Row | None:
    """Find a row by id, also without provider prefix or date, and with 4-5 written as 4.5."""
    name = model.rsplit("/", 1)[-1].lower()
    found = rows.get(model) or rows.get(name)
    if found is not None or "-" not in name:
        return found
    undated = re.sub(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)$", "", name)
    return rows.get(undated) or rows.get(re.sub(r"(?<=\d)-(?=\d)", ".", undated))
