"""Finds the instructions for a path when a tool first touches it."""

import os
from collections.abc import Collection

from trimtab.contracts.customization import FoundInstructions, Instruction
from trimtab.customize.places import Places


class TouchedInstructions:
    """Finds instructions for a path when a tool touches it: by its folders and by globs.

    Each is returned once; texts in `known` are not returned.
    """

    def __init__(
        self, places: Places, found: FoundInstructions, known: Collection[str] = ()
    ) -> None:
        self._places = places
        self._scoped = [item for item in found.instructions if item.globs]
        self._folders = set(places.chain)
        self.known = {*known, *(instruction.text for instruction in found.always)}

    def touch(self, path: str) -> list[Instruction]:
        """Return the instructions for a file or folder that were not returned before."""
        if not path.startswith(self._places.root.rstrip(os.sep) + os.sep):
            return []
        found = [*self._find_by_folder(path), *self._find_by_glob(path)]
        if not found:
            return []
        from trimtab.customize.instructions import merge

        new = [instruction for instruction in merge(found) if instruction.text not in self.known]
        self.known.update(instruction.text for instruction in new)
        return new

    def _find_by_folder(self, path: str) -> list[Instruction]:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        root, unread = self._places.root, []
        while folder not in self._folders and folder.startswith(root + os.sep):
            self._folders.add(folder)
            unread.append(folder)
            folder = os.path.dirname(folder)
        if not unread:
            return []
        from trimtab.customize.instructions import find_in_folders

        return find_in_folders(self._places, reversed(unread))

    def _find_by_glob(self, path: str) -> list[Instruction]:
        if not self._scoped:
            return []
        from trimtab.customize.globs import matches

        relative = os.path.relpath(path, self._places.root)
        found = [scoped for scoped in self._scoped if matches(relative, scoped.globs)]
        self._scoped = [scoped for scoped in self._scoped if scoped not in found]
        return found
