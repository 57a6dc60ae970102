"""Loads modules from one file instead of several hundred, so that a start takes less time.

Python searches its path for each module and opens a file for each: a sixth of the time of a start.
The cache holds the compiled modules of earlier starts and lies beside Python's own compiled files.
A module is taken from it only if its source has not changed and Python's path is the same, so the
cache never decides which module is loaded.
"""

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # `typing` is one of the modules that the cache loads
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, ModuleType

    Entry = tuple[str, str, int, int, int, int]
    """Source, compiled file, the source's change time and size, the code's offset and length."""

FORMAT = "trimtab-modules-1"
FEW = 4
"""Modules that may be missing before the cache is written again.

A first tool call loads a dozen that a run without one does not."""
PYC_HEADER = 16
HEADER_LENGTH = 8


class CachedLoader(SourceFileLoader):
    """Takes the code of a module from the cache; if it is damaged, from where Python would."""

    def __init__(self, cache: "ModuleCache", name: str, path: str) -> None:
        super().__init__(name, path)
        self._cache = cache

    def get_code(self, fullname: str) -> "CodeType | None":
        return self._cache.read(fullname) or super().get_code(fullname)


class ModuleCache:
    """The modules of earlier starts; a finder of `sys.meta_path`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._search_path = tuple(sys.path)
        self._key = (FORMAT, sys.version, sys.flags.optimize, self._search_path)
        self._entries: dict[str, Entry] = {}
        self._fd = -1
        self._start = 0
        self._outdated = False

    def open(self) -> None:
        """Use the file if there is one for this Python and this path."""
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            size = os.fstat(self._fd).st_size
            length = int.from_bytes(os.pread(self._fd, HEADER_LENGTH, 0), "little")
            header = os.pread(self._fd, min(length, size), HEADER_LENGTH)
            key, whole, entries = marshal.loads(header)  # noqa: S302 - as safe as Python's own files
        except (OSError, ValueError, EOFError, TypeError):  # missing or damaged
            self._outdated = True
            return
        self._start = HEADER_LENGTH + length
        self._outdated = key != self._key or size != self._start + whole
        if not self._outdated:
            self._entries = entries

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose source has not changed; None to let Python search."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        source, compiled, changed, size, *_ = entry
        folder, _, file = source.rpartition("/")
        is_package = file == "__init__.py"
        if path is not None and (folder.rpartition("/")[0] if is_package else folder) not in path:
            return None
        try:
            found = os.stat(source)
        except OSError:
            found = None
        if found is None or found.st_ctime_ns != changed or found.st_size != size:
            self._outdated = True
            return None
        spec = ModuleSpec(name, CachedLoader(self, name, source), origin=source)
        spec.has_location = True
        spec.cached = compiled
        spec.submodule_search_locations = [folder] if is_package else None
        return spec

    def read(self, name: str) -> "CodeType | None":
        """Return the code of a module; None if it cannot be read."""
        *_, offset, length = self._entries[name]
        try:
            data = os.pread(self._fd, length, self._start + offset)
            code = marshal.loads(data)  # noqa: S302
        except (OSError, ValueError, EOFError, TypeError):
            code = None
        if isinstance(code, type(self.read.__code__)):
            return code
        self._outdated = True
        return None

    def save(self) -> None:
        """Write the modules of this start and of earlier ones, if the file lacks many of them."""
        if sys.dont_write_bytecode or not os.access(os.path.dirname(self._path), os.W_OK):
            return
        loaded = dict(self._find_loaded())
        if not self._outdated and not self._lacks_many(loaded):
            return
        known = {name: (entry[0], entry[1]) for name, entry in self._entries.items()}
        try:
            self._write({**known, **loaded})
        except (OSError, KeyboardInterrupt):
            return  # the disk is full, say: the next start takes as long as this one

    def _lacks_many(self, loaded: "dict[str, tuple[str, str]]") -> bool:
        """Return True if many modules could be added: those with a compiled file."""
        missing = [place for name, place in loaded.items() if name not in self._entries]
        if len(missing) <= FEW:
            return False
        return sum(read_compiled(*place) is not None for place in missing) > FEW

    def _write(self, modules: dict[str, tuple[str, str]]) -> None:
        """Write the code of modules, given as source and compiled file; others see a whole file."""
        entries: dict[str, Entry] = {}
        codes: list[bytes] = []
        offset = 0
        for name, (source, compiled) in modules.items():
            found = read_compiled(source, compiled)
            if found is not None:
                state, code = found
                facts = (state.st_ctime_ns, state.st_size, offset, len(code))
                entries[name] = (source, compiled, *facts)
                codes.append(code)
                offset += len(code)
        header = marshal.dumps((self._key, offset, entries))
        temporary = f"{self._path}.{os.getpid()}"
        try:
            with open(temporary, "wb") as file:
                file.writelines((len(header).to_bytes(HEADER_LENGTH, "little"), header, *codes))
            os.replace(temporary, self._path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    def _find_loaded(self) -> "Iterator[tuple[str, tuple[str, str]]]":
        """Yield the modules that were loaded from the path this start began with."""
        folders = tuple(f"{folder}/" for folder in self._search_path)
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is None or spec.name != name or not spec.has_location:
                continue
            source, compiled = spec.origin, spec.cached
            if source and compiled and source.endswith(".py") and source.startswith(folders):
                yield name, (source, compiled)


def read_compiled(source: str, compiled: str) -> tuple[os.stat_result, bytes] | None:
    """Return the state of a source and its compiled code; None if it is missing or outdated."""
    try:
        state = os.stat(source)
        with open(compiled, "rb") as file:
            data = file.read()
    except OSError:
        return None
    numbers = (0, int(state.st_mtime), state.st_size)  # 0: checked by time and size
    expected = b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in numbers)
    return (state, data[PYC_HEADER:]) if data[4:PYC_HEADER] == expected else None


def open_cache() -> ModuleCache | None:
    """Load modules from the cache from now on; None where Python keeps no compiled files."""
    spec = sys.modules[__name__].__spec__
    if spec is None or not spec.cached or not all(map(os.path.isabs, sys.path)):
        return None
    folder = os.path.dirname(spec.cached)
    cache = ModuleCache(f"{folder}/modules.{sys.implementation.cache_tag}")
    cache.open()
    sys.meta_path.insert(0, cache)
    return cache
