"""Making a project's folder a place to import from, for as long as its policies are loaded.

Nothing else may be found there instead of what it means elsewhere: not by a policy that imports a library,
and not by kdeclare itself, which goes on in other threads meanwhile.
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
"""What came from a project's folder last."""


@contextmanager
def make_importable(folder: Path, modules: Iterable[str]) -> Iterator[None]:
    """Inside, policies' threads find modules that lie in ``folder`` and are not to be found elsewhere.

    modules: the dotted names that are going to be imported. What is imported stays so until the next project
    is loaded; a policy has to import what it needs at the top of its module.
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
    """What else a module of the project's folder could mean, in words; None if nothing."""
    finder = _find_active_finder()
    top = module.partition(".")[0]
    if finder is None or top == _OWN_PACKAGE or not _has_module(finder.folder, module.split(".")):
        return None
    if top in sys.stdlib_module_names:
        return "is Python's own module"
    loaded = sys.modules.get(top)
    if loaded is not None:
        return None if _is_from(loaded, finder.folder) else "has been imported from elsewhere already"
    other_spec = finder.elsewhere(top)
    return "is an installed module" if other_spec is not None and other_spec.loader is not None else None


def find_modules() -> list[str]:
    """The dotted names of the modules in the project's folder, as far as anybody would look for them."""
    finder = _find_active_finder()
    return (
        [] if finder is None else list(islice(_collect_modules(finder.folder, "", _MAX_DEPTH), _MAX_MODULES))
    )


class _FolderFinder(MetaPathFinder):
    """Finds the top-level modules of a folder.

    policy_modules: those that policies name. found: those that were found here.
    """

    def __init__(self, folder: Path, policy_modules: set[str]) -> None:
        self.folder = folder
        self.found: set[str] = set()
        self._policy_modules = policy_modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See MetaPathFinder; modules in packages are found by Python, as it is told where those are."""
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
        """Where the name leads outside of the folder; a folder without ``__init__`` has no loader."""
        for finder in list(sys.meta_path):
            spec = None if isinstance(finder, _FolderFinder) else finder.find_spec(name, None)
            if spec is not None:
                return None if _is_in(_find_locations(spec), self.folder) else spec
        return None

    def _should_yield(self, spec: ModuleSpec) -> bool:
        """Whether it is any folder, which has the name of another one by chance."""
        return spec.loader is None and spec.name not in self._policy_modules


def _find_active_finder() -> _FolderFinder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _FolderFinder)), None)


def _unload_modules() -> None:
    """The next project may have modules of the same names."""
    for name, module in _imported.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _imported.clear()


def _has_module(folder: Path, steps: Sequence[str]) -> bool:
    path = folder.joinpath(*steps)
    return path.with_name(f"{path.name}.py").is_file() or path.is_dir()


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
