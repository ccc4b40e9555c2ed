"""Making a project's folder a place to import from, for as long as its policies are loaded."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_NEVER = frozenset({*sys.stdlib_module_names, "kdeclare", "__main__", "__init__"})


@contextmanager
def importable(folder: Path, modules: Iterable[str]) -> Iterator[None]:
    """Inside, modules that lie in ``folder`` are found, before others of the same name.

    modules: the dotted names that are going to be imported. What is imported stays so, except where it has
    the name of something that had been imported from elsewhere: that one is back afterwards. So a policy
    has to import what it needs at the top of its module.
    """
    here = folder.resolve()
    names = _modules_in(here, {name.partition(".")[0] for name in modules})
    strangers = {name for name in names if name in sys.modules and not _lies_in(sys.modules[name], here)}
    aside = _taken_out(strangers)
    path = list(sys.path)
    sys.path.insert(0, str(here))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        _taken_out(strangers)
        sys.modules.update(aside)


def _modules_in(folder: Path, wanted: Iterable[str]) -> set[str]:
    """The modules right in a folder; folders without an ``__init__`` only if they are wanted."""
    try:
        files = {file.stem for file in folder.glob("*.py")}
        packages = {file.parent.name for file in folder.glob("*/__init__.py")}
        folders = {name for name in wanted if (folder / name).is_dir()}
    except OSError:
        return set()
    return (files | packages | folders) - _NEVER


def _lies_in(module: ModuleType, folder: Path) -> bool:
    """Whether a top-level module was found in this folder."""
    places = list(getattr(module, "__path__", ())) or [getattr(module, "__file__", None) or ""]
    return any(Path(place).resolve().parent == folder for place in places)


def _taken_out(names: set[str]) -> dict[str, ModuleType]:
    """Forget the modules with these names and what is in them; returns what was forgotten."""
    chosen = [name for name in sys.modules if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in chosen}
