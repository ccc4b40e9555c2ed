"""Import kafka-python without its consumers and producers, which take a third of its import time.

``import kafka.net`` first runs the package ``kafka``, which imports everything. This module registers the
package without running it, so that its modules can be imported on their own. The package runs when other
code, such as a policy in Python, accesses a name that is not one of its modules.
"""

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_NAME = "kafka"


class _DeferredPackage(ModuleType):
    """The package ``kafka`` before its code runs."""

    def __getattr__(self, name: str) -> object:
        """Run the package to get a name that it defines. Modules of the package must be imported instead."""
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
    """Allow importing single modules of kafka-python, unless the whole package has been imported."""
    spec = find_spec(_NAME) if _NAME not in sys.modules else None
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = _DeferredPackage
        sys.modules[_NAME] = package
