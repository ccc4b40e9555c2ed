"""Make the modules in a project's folder importable while the policies of the project are loaded.

A module in the folder must not shadow a library that a policy imports, or a module that kdeclare imports in a
different thread at the same time.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from itertools import islice
from pathlib import Path
from threading import RLock
from types import ModuleType

from kdeclare.policy.isolation import is_loading

_OWN_PACKAGE = "kdeclare"
_EXCLUDED_MODULES = frozenset({*sys.stdlib_module_names, _OWN_PACKAGE, "__main__", "__init__"})
_MAX_DEPTH = 3
_MAX_MODULES = 500

_lock = RLock()
_imported: dict[str, ModuleType] = {}
"""The modules that were imported from the folder of the current project, by name."""


@contextmanager
def make_importable(folder: Path, modules: Iterable[str]) -> Iterator[None]:
    """Make the modules in ``folder`` importable inside a ``with`` block, for threads that load policies.

    If a module outside the folder has the same name, it takes precedence. A policy must import other modules
    of the folder at the top of its module, because they are not importable after the ``with`` block. Imported
    modules stay loaded until another project is loaded.

    modules: the dotted names of the modules with policy classes.
    """
    finder = _FolderFinder(folder.resolve(), {name.partition(".")[0] for name in modules})
    with _lock:
        _unload_modules()
        sys.meta_path.insert(0, finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            imported_names = [name for name in list(sys.modules) if name.partition(".")[0] in finder.found]
            _imported.update((name, sys.modules[name]) for name in imported_names)


def explain_ambiguity(module: str) -> str | None:
    """Explain why the name of a module in the project's folder is ambiguous.

    Return a predicate such as "is an installed module", or None if the name is unambiguous.
    """
    finder = _find_active_finder()
    top = module.partition(".")[0]
    if finder is None or top == _OWN_PACKAGE or not _has_module(finder.folder, module.split(".")):
        return None
    if top in sys.stdlib_module_names:
        return "is a module of Python's standard library"
    loaded = sys.modules.get(top)
    if loaded is not None:
        return (
            None if _is_from(loaded, finder.folder) else "has already been imported from a different folder"
        )
    other_spec = finder.elsewhere(top)
    return "is an installed module" if other_spec is not None and other_spec.loader is not None else None


def find_modules() -> list[str]:
    """Return the dotted names of the modules in the project's folder, up to a maximum depth and number."""
    finder = _find_active_finder()
    return (
        [] if finder is None else list(islice(_collect_modules(finder.folder, "", _MAX_DEPTH), _MAX_MODULES))
    )


class _FolderFinder(MetaPathFinder):
    """An import finder for the top-level modules in a project's folder.

    policy_modules: the top-level names of the modules with policy classes.
    found: the names of the modules that were imported from the folder.
    """

    def __init__(self, folder: Path, policy_modules: set[str]) -> None:
        self.folder = folder
        self.found: set[str] = set()
        self._policy_modules = policy_modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a top-level module. For submodules, return None: Python finds them itself."""
        if path is not None or fullname in _EXCLUDED_MODULES or not is_loading():
            return None
        spec = PathFinder.find_spec(fullname, [str(self.folder)])
        if spec is None:
            return None
        other_spec = self.elsewhere(fullname)
        if other_spec is not None and (other_spec.loader is not None or self._should_yield(spec)):
            return None
        self.found.add(fullname)
        return spec

    def elsewhere(self, name: str) -> ModuleSpec | None:
        """Return the spec of a module with this name outside the folder, or None if there is no such module.

        The spec of a package without ``__init__`` has no loader.
        """
        for finder in list(sys.meta_path):
            spec = None if isinstance(finder, _FolderFinder) else finder.find_spec(name, None)
            if spec is not None:
                return None if _is_in(_find_locations(spec), self.folder) else spec
        return None

    def _should_yield(self, spec: ModuleSpec) -> bool:
        """Return whether the spec is for a package without ``__init__`` that contains no policy classes."""
        return spec.loader is None and spec.name not in self._policy_modules


def _find_active_finder() -> _FolderFinder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _FolderFinder)), None)


def _unload_modules() -> None:
    """Unload the modules of the previous project, because another project can use the same module names."""
    for name, module in _imported.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _imported.clear()


def _has_module(folder: Path, steps: Sequence[str]) -> bool:
    path = folder.joinpath(*steps)
    try:
        return path.with_name(f"{path.name}.py").is_file() or path.is_dir()
    except OSError:  # a name that no file can have, because it is too long
        return False


def _find_locations(spec: ModuleSpec) -> list[str]:
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.has_location and spec.origin else []


def _is_from(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return _is_in(list(getattr(module, "__path__", ())) or ([file] if file else []), folder)


def _is_in(locations: Iterable[str], folder: Path) -> bool:
    return any(Path(place).resolve().parent == folder for place in locations)


def _collect_modules(folder: Path, prefix: str, levels: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as directory:
            entries = sorted(directory, key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        name, suffix = os.path.splitext(entry.name)  # noqa: PTH122
        if suffix == ".py" and name.isidentifier() and not name.startswith("__"):
            yield f"{prefix}{name}"
        elif not suffix and levels > 1 and name.isidentifier() and not name.startswith("__"):
            yield from _collect_modules(Path(entry.path), f"{prefix}{name}.", levels - 1)
