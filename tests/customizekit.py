"""Folders for tests of customizations: a home, a repository in it, and files with short texts."""

from pathlib import Path

from trimtab.config.paths import Home
from trimtab.customize.places import Places


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def places_in(folder: Path, *, cwd: str = "", trusted: bool = True, **env: str) -> Places:
    """`folder/repo` is the repository, `folder/home` the person's home directory."""
    user, repository = folder / "home", folder / "repo"
    work = repository / cwd
    for directory in (user, work):
        directory.mkdir(parents=True, exist_ok=True)
    config = str(user / ".copilot")
    return Places(
        cwd=str(work),
        home=Home(config=config, state=config),
        user=str(user),
        env=env,
        repository=str(repository),
        trusted=trusted,
    )
