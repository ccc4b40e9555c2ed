"""Print figures about the code: modules and lines per layer, large folders, and import cycles.

    python -m scripts.structure [FOLDER]

FOLDER contains the package ``kdeclare`` (default: this checkout). Use FOLDER to compare two commits.
"""

import ast
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

_PACKAGE = "kdeclare"
_MOST_SIBLINGS = 20


def find_modules(root: Path) -> dict[str, Path]:
    """Return all modules by dotted name."""
    files = sorted((root / _PACKAGE).rglob("*.py"))
    return {".".join(_parts(file.relative_to(root))): file for file in files}


def find_imports(modules: dict[str, Path]) -> "nx.DiGraph[str]":
    """Build the graph of top-level imports. Imports that are only for type checkers are omitted."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(modules)
    for name, file in modules.items():
        for target in _imported(name, file, modules):
            if target != name:
                graph.add_edge(name, target)
    return graph


def _parts(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _imported(name: str, file: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            source = _source(name, file, node)
            for alias in node.names:
                module = f"{source}.{alias.name}"
                if module in modules or source in modules:
                    yield module if module in modules else source


def _source(name: str, file: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def count_lines(file: Path) -> int:
    """Count the lines of code and docstrings. Empty lines and comment lines do not count."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def _layer(name: str) -> str:
    parts = name.split(".")
    if len(parts) < 2:
        return _PACKAGE
    return ".".join(parts[1:3]) if parts[1] == "providers" and len(parts) > 2 else parts[1]


def _listed_imports(root: Path) -> int:
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    contracts = settings.get("tool", {}).get("importlinter", {}).get("contracts", [])
    named = [c for c in contracts if "provider" in c["name"].lower()]
    return sum(len(contract.get("ignore_imports", ())) for contract in named)


def find_large_folders(modules: dict[str, Path]) -> dict[Path, int]:
    """Return the folders with too many modules, and how many modules they have."""
    counts = Counter(file.parent for file in modules.values())
    return {folder: count for folder, count in sorted(counts.items()) if count > _MOST_SIBLINGS}


def find_cycles(modules: dict[str, Path]) -> list[set[str]]:
    """Return the groups of modules that import each other."""
    return [group for group in nx.strongly_connected_components(find_imports(modules)) if len(group) > 1]


def main(root: Path) -> None:
    """Print the figures."""
    modules = find_modules(root)
    lines = {name: count_lines(file) for name, file in modules.items()}
    by_layer: dict[str, list[int]] = defaultdict(list)
    for name, count in lines.items():
        by_layer[_layer(name)].append(count)
    print(f"{'layer':24} {'modules':>8} {'lines':>8} {'median':>8}")
    for layer, counts in sorted(by_layer.items()):
        print(f"{layer:24} {len(counts):8,} {sum(counts):8,} {statistics.median(counts):8.0f}")
    counts = list(lines.values())
    print(f"{'all':24} {len(counts):8,} {sum(counts):8,} {statistics.median(counts):8.0f}")
    full = [f"{folder.relative_to(root)} ({n})" for folder, n in find_large_folders(modules).items()]
    print(f"folders with more than {_MOST_SIBLINGS} modules: {', '.join(full) or 'none'}")
    print(f"import cycles: {len(find_cycles(modules))}")
    print(f"imports of a higher layer that pyproject.toml permits: {_listed_imports(root)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
