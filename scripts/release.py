"""Build the files of a release: wheel, source distribution, SBOM, their checksums and, on request, the image.

The wheel contains the compiled plug-in for Connect workers, so that users need no Java compiler. Building a
release therefore needs JDK 17, and downloads the jars of Kafka Connect the first time.

``python -m scripts.release`` (``make dist``) builds the current commit from a clean copy, so that no local
file gets into a release. The tag of the commit, such as ``v0.2.0``, ``kdeclare/version.py`` and the heading
in the changelog must agree. ``--untagged`` skips these checks, to test the build.

The files are written to ``dist``. Building the same commit with the same build tools produces the
same wheel.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path

from scripts.dependencies import sbom

ROOT = Path(__file__).parent.parent
CHECKSUMS = "SHA256SUMS"
PLUGIN_FOLDER = "kdeclare/providers/connect/client/plugin/released"
_VERSION = re.compile(r'^VERSION = "([^"]+)"$', re.MULTILINE)


class ReleaseError(Exception):
    """Raised if the release cannot be built. The message contains the reason."""


def check_tag(version: str, tags: Sequence[str], changelog: str) -> None:
    """Check that the commit has the tag of the version, and that the changelog has a date for the version.

    Raises ReleaseError.
    """
    if f"v{version}" not in tags:
        found = f"only {', '.join(tags)}" if tags else "no tag"
        raise ReleaseError(
            f"kdeclare/version.py has version {version}, but the commit has {found}. "
            f"Change the version, or tag the commit: git tag -a v{version}"
        )
    if not re.search(rf"^## {re.escape(version)}(?! \(unreleased\))\b", changelog, re.MULTILINE):
        raise ReleaseError(
            f"CHANGELOG.md has no heading '## {version} (DATE)'. Write the date of the release."
        )


def read_version(source: Path) -> str:
    """Return the version in the source code of kdeclare. Raises ReleaseError."""
    match = _VERSION.search((source / "kdeclare" / "version.py").read_text("utf-8"))
    if match is None:
        raise ReleaseError('kdeclare/version.py has no line VERSION = "…".')
    return match[1]


def export_commit(repository: Path, folder: Path) -> None:
    """Copy the files of the current commit to a folder."""
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=repository, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as content:
        content.extractall(folder, filter="data")


def build_plugin(source: Path) -> None:
    """Compile the plug-in for Connect workers into the package, with the kdeclare in ``source``.

    Raises ReleaseError.
    """
    command = [sys.executable, "-m", "kdeclare", "connect", "plugin", "build", "--out", PLUGIN_FOLDER]
    environ = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=source, env=environ, check=False)
    if done.returncode:
        raise ReleaseError(f"The plug-in for Connect workers was not built:\n{done.stderr.strip()}")


def build_packages(source: Path, out: Path, commit_time: str) -> None:
    """Build the source distribution, and the wheel from it. commit_time: seconds since 1970."""
    environ = {**os.environ, "SOURCE_DATE_EPOCH": commit_time}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    if done.returncode:
        raise ReleaseError(f"The build failed:\n{(done.stdout + done.stderr).strip()}")


def write_checksums(folder: Path) -> Path:
    """Write the SHA-256 of all files of the folder, in the format of ``sha256sum --check``."""
    files = sorted(path for path in folder.iterdir() if path.name != CHECKSUMS)
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    checksums = folder / CHECKSUMS
    checksums.write_text("".join(lines), "utf-8")
    return checksums


def build_image(source: Path, version: str, name: str) -> None:
    """Build the container image with docker or podman. Raises ReleaseError."""
    engine = shutil.which("docker") or shutil.which("podman")
    if engine is None:
        raise ReleaseError("The image needs docker or podman, and neither is on PATH.")
    command = [engine, "build", "--tag", f"{name}:{version}", str(source)]
    if subprocess.run(command, check=False).returncode:
        raise ReleaseError("The image could not be built.")


def _read_git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()


def make_release(repository: Path, out: Path, *, is_tagged: bool = True, image: str | None = None) -> str:
    """Build all files of a release into ``out``, which is emptied first. Return the version.

    is_tagged: whether the commit must have the tag of its version. image: the name of the image to build;
    None for no image. Raises ReleaseError.
    """
    with tempfile.TemporaryDirectory(prefix="kdeclare-release-") as folder:
        source = Path(folder)
        export_commit(repository, source)
        version = read_version(source)
        installed = distribution(sbom.PACKAGE).version
        if installed != version:
            raise ReleaseError(
                f"The installed version of kdeclare is {installed}, so the SBOM would not describe this "
                "release. Run 'make install'."
            )
        if is_tagged:
            tags = _read_git(repository, "tag", "--points-at", "HEAD").split()
            check_tag(version, tags, (source / "CHANGELOG.md").read_text("utf-8"))
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        build_plugin(source)
        build_packages(source, out, _read_git(repository, "log", "-1", "--format=%ct"))
        if sbom.main([str(out / f"kdeclare-{version}.cdx.json")]):
            raise ReleaseError("The SBOM could not be written.")
        if image is not None:
            build_image(source, version, image)
    write_checksums(out)
    return version


def main(arguments: Sequence[str]) -> int:
    """Build a release according to the arguments, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.release", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder (default: dist)")
    parser.add_argument("--untagged", action="store_true", help="build the current commit, without its tag")
    parser.add_argument("--image", metavar="NAME", help="also build the container image with this name")
    options = parser.parse_args(arguments)
    try:
        version = make_release(ROOT, options.out, is_tagged=not options.untagged, image=options.image)
    except ReleaseError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(f"kdeclare {version}: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
