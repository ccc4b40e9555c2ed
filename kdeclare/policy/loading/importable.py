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

_OURS = "kdeclare"
_NEVER = frozenset({*sys.stdlib_module_names, _OURS, "__main__", "__init__"})
_DEEPEST = 3
_MOST = 500

_one_at_a_time = RLock()
_imported: dict[str, ModuleType] = {}
"""What came from a project's folder last."""


@contextmanager
def importable(folder: Path, modules: Iterable[str]) -> Iterator[None]:
    """Inside, policies' threads find modules that lie in ``folder`` and are not to be found elsewhere.

    modules: the dotted names that are going to be imported. What is imported stays so until the next project
    is loaded; a policy has to import what it needs at the top of its module.
    """
    finder = _Finder(folder.resolve(), {name.partition(".")[0] for name in modules})
    with _one_at_a_time:
        _forget()
        sys.meta_path.insert(0, finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            found = [name for name in list(sys.modules) if name.partition(".")[0] in finder.found]
            _imported.update((name, sys.modules[name]) for name in found)


def elsewhere_too(module: str) -> str | None:
    """What else a module of the project's folder could mean, in words; None if nothing."""
    finder = _current()
    top = module.partition(".")[0]
    if finder is None or top == _OURS or not _lies_there(finder.folder, module.split(".")):
        return None
    if top in sys.stdlib_module_names:
        return "is Python's own module"
    loaded = sys.modules.get(top)
    if loaded is not None:
        return None if _is_from(loaded, finder.folder) else "has been imported from elsewhere already"
    other = finder.elsewhere(top)
    return "is an installed module" if other is not None and other.loader is not None else None


def modules_here() -> list[str]:
    """The dotted names of the modules in the project's folder, as far as anybody would look for them."""
    finder = _current()
    return [] if finder is None else list(islice(_modules_in(finder.folder, "", _DEEPEST), _MOST))


class _Finder(MetaPathFinder):
    """Finds the top-level modules of a folder.

    named: those that policies name. found: those that were found here.
    """

    def __init__(self, folder: Path, named: set[str]) -> None:
        self.folder = folder
        self.found: set[str] = set()
        self._named = named

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See MetaPathFinder; modules in packages are found by Python, as it is told where those are."""
        if path is not None or fullname in _NEVER or not is_loading():
            return None
        spec = PathFinder.find_spec(fullname, [str(self.folder)])
        if spec is None:
            return None
        other = self.elsewhere(fullname)
        if other is not None and (other.loader is not None or self._gives_way(spec)):
            return None
        self.found.add(fullname)
        return spec

    def elsewhere(self, name: str) -> ModuleSpec | None:
        """Where the name leads outside of the folder; a folder without ``__init__`` has no loader."""
        for finder in list(sys.meta_path):
            spec = None if isinstance(finder, _Finder) else finder.find_spec(name, None)
            if spec is not None:
                return None if _is_in(_places(spec), self.folder) else spec
        return None

    def _gives_way(self, spec: ModuleSpec) -> bool:
        """Whether it is any folder, which has the name of another one by chance."""
        return spec.loader is None and spec.name not in self._named


def _current() -> _Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)


def _forget() -> None:
    """The next project may have modules of the same names."""
    for name, module in _imported.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _imported.clear()


def _lies_there(folder: Path, steps: Sequence[str]) -> bool:
    path = folder.joinpath(*steps)
    return path.with_name(f"{path.name}.py").is_file() or path.is_dir()


def _places(spec: ModuleSpec) -> list[str]:
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.has_location and spec.origin else []


def _is_from(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return _is_in(list(getattr(module, "__path__", ())) or ([file] if file else []), folder)


def _is_in(places: Iterable[str], folder: Path) -> bool:
    return any(Path(place).resolve().parent == folder for place in places)


def _modules_in(folder: Path, above: str, levels: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        name, suffix = os.path.splitext(entry.name)  # noqa: PTH122
        if suffix == ".py" and name.isidentifier() and not name.startswith("__"):
            yield f"{above}{name}"
        elif not suffix and levels > 1 and name.isidentifier() and not name.startswith("__"):
            yield from _modules_in(Path(entry.path), f"{above}{name}.", levels - 1)
