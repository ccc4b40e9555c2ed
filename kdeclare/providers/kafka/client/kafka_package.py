"""Import kafka-python without its consumers or producers, which saves a third of the import time.

``import kafka.net`` would first execute the package ``kafka``, which imports all modules. This module
registers the package without executing it. The package is executed later if other code, such as a policy in
Python, accesses a name in it that is not a module.
"""

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_NAME = "kafka"


class _DeferredPackage(ModuleType):
    """The package ``kafka`` before its code is executed."""

    def __getattr__(self, name: str) -> object:
        """Load the package ``kafka`` on first use, and return one of its attributes.

        Submodules are not loaded this way. They must be imported explicitly.
        """
        if find_spec(f"{_NAME}.{name}") is not None:
            raise AttributeError(f"module '{_NAME}.{name}' has not been imported")
        spec = self.__spec__
        if spec is None or spec.loader is None:
            raise AttributeError(f"module '{_NAME}' has no attribute '{name}'")
        package: ModuleType = self
        package.__class__ = ModuleType
        spec.loader.exec_module(package)
        return getattr(package, name)


def defer_package() -> None:
    """Allow importing single modules of kafka-python, unless the whole package is already imported."""
    spec = find_spec(_NAME) if _NAME not in sys.modules else None
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = _DeferredPackage
        sys.modules[_NAME] = package
