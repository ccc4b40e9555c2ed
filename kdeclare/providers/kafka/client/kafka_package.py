"""kafka-python without its consumers and producers, which take a third of the time of its import.

``import kafka.net`` first runs the package ``kafka``, which imports all there is. Here the package is known
without having been run, so that its modules can be imported by themselves. It is run when somebody, such as a
policy in Python, asks it for a name that is none of its modules.
"""

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_NAME = "kafka"


class _DeferredPackage(ModuleType):
    """The package until it is run."""

    def __getattr__(self, name: str) -> object:
        """Run the package for what it defines; a module of it is left to ``import``."""
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
    """Let modules of kafka-python be imported without the package as a whole, unless that has been."""
    spec = find_spec(_NAME) if _NAME not in sys.modules else None
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = _DeferredPackage
        sys.modules[_NAME] = package
