"""Import only those modules of kafka-python that a command needs, which halves the import time.

``import kafka.net`` would first execute the package ``kafka``, which imports all modules, and
``kafka.protocol.admin`` builds the classes of all administrative messages. This module registers these
packages without executing them. A package is executed later if other code, such as a policy in Python,
accesses a name in it that is not a module.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "kafka": {},
    "kafka.protocol.admin": {"ListGroupsRequest": "groups"},
    "kafka.protocol.consumer": {"OffsetFetchRequest": "group"},
}
"""The packages, each with the names that kafka-python itself imports from it, and their modules."""


class _DeferredPackage(ModuleType):
    """A package before its code is executed."""

    def __getattr__(self, name: str) -> object:
        """Load the package on first use, and return one of its attributes.

        Submodules are not loaded this way. They must be imported explicitly.
        """
        module = _PACKAGES[self.__name__].get(name)
        if module is not None:
            return getattr(import_module(f"{self.__name__}.{module}"), name)
        if find_spec(f"{self.__name__}.{name}") is not None:
            raise AttributeError(f"module '{self.__name__}.{name}' has not been imported")
        spec = self.__spec__
        if spec is None or spec.loader is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        package: ModuleType = self
        package.__class__ = ModuleType
        spec.loader.exec_module(package)
        return getattr(package, name)


def defer_packages() -> None:
    """Allow importing single modules of kafka-python, unless the whole package is already imported."""
    for name in _PACKAGES:
        spec = find_spec(name) if name not in sys.modules else None
        if spec is not None:
            package = module_from_spec(spec)
            package.__class__ = _DeferredPackage
            sys.modules[name] = package
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, package)
