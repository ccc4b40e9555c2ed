"""Write the software bill of materials (SBOM) of an installed kdeclare, as CycloneDX JSON.

``python -m scripts.dependencies.sbom FILE`` (``make sbom``) lists every package that ``pip install kdeclare``
installs, with the versions in constraints.txt. The packages of the extras are optional components. Each
component has the license from the metadata of its package. pip reports the hashes of the files that it would
install for this platform; without a package registry, the SBOM has no hashes, and the command prints a
warning.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

PACKAGE = "kdeclare"
EXTRAS = ("compression", "fleet", "msk-iam", "object-storage", "policies", "spark-connect")
"""The extras whose packages the SBOM lists as optional components.

The extra ``kerberos`` is left out, because pip compiles its packages on each machine.
"""

_TIMEOUT_S = 600


@dataclass
class Closure:
    """The packages that a package requires, directly or indirectly, in this environment.

    needs: the names of the packages that each package requires. extras: the extras of each package that are
    required.
    """

    needs: dict[str, set[str]] = field(default_factory=dict)
    extras: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, extras: Iterable[str] = ()) -> None:
        """Add a package with all packages that it requires. Raises PackageNotFoundError."""
        key = normalize_name(name)
        known, asked = self.extras.setdefault(key, set()), set(extras)
        if key in self.needs and asked <= known:
            return
        known |= asked
        needs = self.needs.setdefault(key, set())
        for requirement in _list_requirements(distribution(name), known):
            needs.add(normalize_name(requirement.name))
            self.add(requirement.name, requirement.extras)


def _list_requirements(package: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in package.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def normalize_name(name: str) -> str:
    """Normalize the name of a package, so that equivalent names are equal (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def build_sbom(hashes: Mapping[str, Mapping[str, str]], created_at: datetime | None = None) -> Bom:
    """Return the SBOM. hashes: the hashes of the files of each package, by algorithm, such as sha256."""
    required, all_packages = Closure(), Closure()
    required.add(PACKAGE)
    all_packages.add(PACKAGE, EXTRAS)
    components = {
        name: _build_component(name, is_required=name in required.needs, hashes=hashes.get(name, {}))
        for name in sorted(all_packages.needs)
    }
    root = components[PACKAGE]
    root.type = ComponentType.APPLICATION
    bom = Bom()
    bom.metadata.component = root
    if created_at is not None:
        bom.metadata.timestamp = created_at
    for name, component in components.items():
        if component is not root:
            bom.components.add(component)
        bom.register_dependency(component, [components[need] for need in sorted(all_packages.needs[name])])
    return bom


def _build_component(name: str, *, is_required: bool, hashes: Mapping[str, str]) -> Component:
    package = distribution(name)
    purl = PackageURL("pypi", None, name, package.version)
    return Component(
        name=package.metadata["Name"],
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        scope=ComponentScope.REQUIRED if is_required else ComponentScope.OPTIONAL,
        description=_read_field(package, "Summary"),
        licenses=_read_licenses(package),
        hashes=[HashType(alg=_ALGORITHMS[key], content=text) for key, text in hashes.items()],
    )


def _read_field(package: Distribution, name: str) -> str:
    return next(iter(package.metadata.get_all(name) or ()), "")


_ALGORITHMS = {"sha256": HashAlgorithm.SHA_256, "sha512": HashAlgorithm.SHA_512}


def _read_licenses(package: Distribution) -> list[License]:
    """Return the license in the metadata: an SPDX expression (PEP 639), a name, or classifiers."""
    factory = LicenseFactory()
    text = _read_field(package, "License-Expression") or _read_field(package, "License")
    if text and "\n" not in text:
        return [factory.make_from_string(text)]
    classifiers = package.metadata.get_all("Classifier") or []
    names = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: OSI Approved ::")]
    return [factory.make_with_name(name) for name in names]


def read_hashes(pins: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the hashes of the files that pip would install for these versions.

    Raises RuntimeError, with pip's reason, if pip cannot determine the files.
    """
    with tempfile.TemporaryDirectory(prefix="kdeclare-sbom-") as folder:
        file, report = Path(folder, "pins.txt"), Path(folder, "report.json")
        file.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        options = ("--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--no-deps")
        command = [sys.executable, "-m", "pip", "install", *options, "-r", str(file), "--report", str(report)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"pip did not finish within {_TIMEOUT_S} s") from None
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["pip failed"])[-1])
        items = json.loads(report.read_text())["install"]
    return {
        normalize_name(item["metadata"]["name"]): {
            algorithm: text
            for algorithm, text in item["download_info"]["archive_info"]["hashes"].items()
            if algorithm in _ALGORITHMS
        }
        for item in items
    }


def list_pins() -> dict[str, str]:
    """Return the installed versions of all packages of the SBOM except kdeclare itself."""
    closure = Closure()
    closure.add(PACKAGE, EXTRAS)
    return {name: distribution(name).version for name in sorted(closure.needs) if name != PACKAGE}


def format_sbom(bom: Bom) -> str:
    """Return an SBOM as CycloneDX JSON."""
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the SBOM to the file in the arguments, and return the exit code."""
    (file,) = map(Path, arguments)
    hashes: Mapping[str, Mapping[str, str]] = {}
    try:
        hashes = read_hashes(list_pins())
    except RuntimeError as problem:
        print(f"warning: the SBOM has no hashes: {problem}", file=sys.stderr)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(format_sbom(build_sbom(hashes)), encoding="utf-8")
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
