"""Run kdeclare's contract suite for providers on the flags provider."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from kdeclare_flags.provider import PROVIDER
from kdeclare_flags.service import FlagService

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.parts import Connections
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.testing.provider_contract import Declared, ProviderContract


class TestFlags(ProviderContract):
    """The contract suite. Each test uses a separate SQLite file."""

    provider = PROVIDER
    before = (
        Declared("Flag", "dark-mode", {"rollout": 10, "description": "Night"}),
        Declared("Flag", "old-search", {"rollout": 100}),
        Declared("FlagClient", "web", {"flags": ["dark-mode", "old-search"], "token": "${env.WEB_TOKEN}"}),
        Declared("FlagClient", "batch", {"flags": ["old-search"], "token": "${env.BATCH_TOKEN}"}),
    )
    after = (
        Declared("Flag", "dark-mode", {"rollout": 50, "description": "Night"}),
        Declared("Flag", "new-search", {"rollout": 5}),
        Declared("FlagClient", "web", {"flags": ["dark-mode", "new-search"], "token": "${env.NEW_TOKEN}"}),
        Declared("FlagClient", "mobile", {"flags": ["new-search"], "token": "${env.MOBILE_TOKEN}"}),
    )
    elsewhere = (
        Declared("Flag", "dark-mode", {"rollout": 77, "description": "Night"}),
        Declared("FlagClient", "web", {"flags": ["dark-mode"], "token": "${env.OTHER_TOKEN}"}),
    )
    secrets: ClassVar[Mapping[str, str]] = {
        "${env.WEB_TOKEN}": "web-secret-1234567",
        "${env.NEW_TOKEN}": "new-secret-1234567",
        "${env.BATCH_TOKEN}": "batch-secret-1234567",
        "${env.MOBILE_TOKEN}": "mobile-secret-1234567",
        "${env.OTHER_TOKEN}": "other-secret-1234567",
    }

    def make_system(self, folder: Path) -> object:
        service = FlagService(folder / "flags.db")
        service.create()
        return service

    def connect(self, system: object) -> Connections:
        return Connections(system)

    def dump(self, system: object) -> JsonValue:
        assert isinstance(system, FlagService)
        return {
            str(id_): {name: v.value if isinstance(v, Secret) else v for name, v in fields.items()}
            for id_, fields in system.read().objects.items()
        }
