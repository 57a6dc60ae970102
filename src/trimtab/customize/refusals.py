"""A guard that cannot be read refuses: nobody knows what it would have allowed."""

from trimtab.contracts.hooks import HookEntry, Origin

_SAY = 'cat > /dev/null; printf "%s" "$0" >&2; exit 2'


def refusal(event: str, origin: Origin, file: str, line: int = 0, why: str = "") -> HookEntry:
    """A hook in the place of one that is not usable; it denies, and says what to correct."""
    about = f" ({why})" if why else ""
    reason = f"a guard in {file} cannot be used{about}; correct or remove it"
    return HookEntry(
        event=event,
        type="command",
        origin=origin,
        file=file,
        line=line,
        argv=("sh", "-c", _SAY, reason),
    )
