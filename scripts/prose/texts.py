"""Collect the texts that people read: diagnostics, docstrings, comments, help, and documentation."""

import ast
import io
import re
import tokenize
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE_FOLDERS = ("kdeclare", "examples/provider", "scripts", "benchmarks")
PAGES = ("README.md", "CHANGELOG.md", "docs", "examples")
GENERATED = ("docs/reference/", "docs/errors.md")
"""Pages made of texts that are in the code."""
_MAX_CODE = 120
DIAGNOSTICS = frozenset({"error", "warning", "info", "denied", "Diagnostic"})


class TextKind(StrEnum):
    """Where people meet a text."""

    DIAGNOSTIC = "diagnostic"
    DOCSTRING = "docstring"
    COMMENT = "comment"
    MESSAGE = "message"
    PAGE = "page"


@dataclass(frozen=True, order=True)
class Text:
    """One text with its place. Placeholders of f-strings are shown as ``{}``.

    context: what a reader sees above the text: the declaration that a docstring belongs to, or the headings
        above a paragraph. Empty for all other texts.
    """

    file: str
    line: int
    kind: TextKind
    text: str
    context: str = ""


@cache
def collect_texts() -> tuple[Text, ...]:
    """Return every text of the project, file by file. The files are read only once per process."""
    return tuple(_read_all())


def _read_all() -> Iterator[Text]:
    for folder in CODE_FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file.parent != Path(__file__).parent:  # it quotes what it looks for
                yield from _read_module(file)
    for page in PAGES:
        path = ROOT / page
        for file in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            name = str(file.relative_to(ROOT))
            if not name.startswith(GENERATED):
                yield from read_page(file.read_text(), name)


def _read_module(file: Path) -> Iterator[Text]:
    name, source = str(file.relative_to(ROOT)), file.read_text()
    tree = ast.parse(source)
    documented: set[int] = set()
    nodes = list(ast.walk(tree))
    for docstring, declaration in _find_docstrings(tree):
        documented.add(id(docstring))
        context = declaration or f"module {name.removesuffix('.py').replace('/', '.')}"
        yield Text(name, docstring.lineno, TextKind.DOCSTRING, str(docstring.value), context)
    for diagnostic in find_diagnostics(tree):
        text = " / ".join(filter(None, (render(part) for part in diagnostic.parts)))
        yield Text(name, diagnostic.line, TextKind.DIAGNOSTIC, text)
        documented |= {id(node) for part in diagnostic.parts for node in ast.walk(part)}
    documented |= {id(node) for node in _find_types(nodes)}
    documented |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in documented:
            text = render(node)
            if len(text.split()) > 2:
                yield Text(name, node.lineno, TextKind.MESSAGE, text)
    yield from _read_comments(source, name)


def _read_comments(source: str, name: str) -> Iterator[Text]:
    """Yield comments; lines that follow each other are one."""
    lines: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type is not tokenize.COMMENT or re.match(r"# ?(noqa|type:|!)", token.string):
            continue
        is_alone = token.line.lstrip().startswith("#")
        if lines and not (is_alone and token.start[0] == last + 1):
            yield Text(name, start, TextKind.COMMENT, " ".join(lines))
            lines = []
        start = start if lines else token.start[0]
        last = token.start[0]
        lines.append(token.string.lstrip("# "))
    if lines:
        yield Text(name, start, TextKind.COMMENT, " ".join(lines))


def read_page(source: str, name: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table rows of a page. Fenced and indented code is left out."""
    in_code = False
    paragraph: list[str] = []
    headings: list[str] = []
    start = text_column = 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        stripped = line.strip()
        column = len(line) - len(line.lstrip())
        if stripped and not in_code and not paragraph:
            text_column = min(text_column, column)  # a line further left ends the list item
            if column >= text_column + 4:
                continue
        item = None if in_code else re.match(r" *(?:[-*]|\d+\.) +", line)
        text_column = item.end() if item else text_column
        is_fence = stripped.startswith("```")
        if is_fence or in_code or not stripped or re.match(r"[-*|#>]|\d+\. ", stripped):
            if paragraph:
                yield Text(name, start, TextKind.PAGE, " ".join(paragraph), " › ".join(headings))
            paragraph = []
        heading = None if in_code else re.match(r"(#+) +(.*)", line)
        if heading:
            headings = [*headings[: len(heading[1]) - 1], heading[2]]
        in_code = in_code != is_fence
        if stripped and not in_code and not is_fence:
            start = start if paragraph else number
            paragraph.append(stripped)


def _find_docstrings(
    scope: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, declaration: str = ""
) -> Iterator[tuple[ast.Constant, str]]:
    """Yield each docstring below a node, with the declaration that it belongs to; empty for a module.

    The docstring of an attribute or a constant follows its assignment.
    """
    above = declaration
    for statement in scope.body:
        match statement:
            case ast.Expr(value=ast.Constant(value=str()) as node):
                yield node, above
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _find_docstrings(statement, _format_declaration(statement, scope))
            case ast.Assign() | ast.AnnAssign():
                above = _shorten(ast.unparse(statement))


def _format_declaration(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, scope: ast.AST) -> str:
    prefix = f"{scope.name}." if isinstance(scope, ast.ClassDef) else ""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {prefix}{node.name}" + (f"({bases})" if bases else "")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {prefix}{node.name}({ast.unparse(node.args)}){returns}"


def _shorten(code: str) -> str:
    return code.partition("\n")[0][:_MAX_CODE]


def _find_types(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yield the type expressions of a module that can be strings: annotations, and the types of casts."""
    for node in nodes:
        match node:
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.FunctionDef(returns=ast.expr() as returns):
                yield returns
            case ast.Call(func=ast.Name(id="cast"), args=[type_, _]):
                yield type_


@dataclass(frozen=True)
class DiagnosticCall:
    """A call that makes a diagnostic; parts are missing where it passes none."""

    line: int
    summary: ast.expr | None
    detail: ast.expr | None
    hint: ast.expr | None
    scope: ast.AST

    @property
    def parts(self) -> tuple[ast.expr, ...]:
        """Summary, detail and hint."""
        return tuple(part for part in (self.summary, self.detail, self.hint) if part is not None)


def find_diagnostics(tree: ast.Module) -> Iterator[DiagnosticCall]:
    """Yield the calls of a module that make diagnostics."""
    for node, scope in _walk_with_scopes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DIAGNOSTICS:
            arguments = node.args[2:] if node.func.id == "Diagnostic" else node.args[1:]
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            given = dict(zip(("summary", "detail", "hint"), arguments, strict=False)) | named
            yield DiagnosticCall(
                node.lineno, given.get("summary"), given.get("detail"), given.get("hint"), scope
            )


def _walk_with_scopes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node with the innermost function or module that contains it, in the order of `ast.walk`."""
    waiting: deque[tuple[ast.AST, ast.AST]] = deque([(tree, tree)])
    while waiting:
        node, scope = waiting.popleft()
        yield node, scope
        inner = node if isinstance(node, ast.FunctionDef) else scope
        waiting.extend((child, inner) for child in ast.iter_child_nodes(node))


def render(node: ast.expr) -> str:
    """Return the text of an expression; empty if it is not a text, ``{}`` for what is not constant in it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(render(value) or "{}" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (render(left) or "{}") + (render(right) or "{}")
        case ast.IfExp(body=body, orelse=orelse):
            return " | ".join(filter(None, (render(body), render(orelse))))
    return ""


def expand(
    node: ast.expr, tree: ast.Module, scope: ast.AST, seen: frozenset[str] = frozenset()
) -> Iterator[ast.expr]:
    """Yield the expressions that an expression can stand for: branches, and values assigned to its name."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from expand(body, tree, scope, seen)
            yield from expand(orelse, tree, scope, seen)
        case ast.BoolOp(values=values):
            for value in values:
                yield from expand(value, tree, scope, seen)
        case ast.Call(func=ast.Attribute(value=receiver, attr="format" | "strip")):
            yield from expand(receiver, tree, scope, seen)
        case ast.Name(id=name) if name not in seen:
            for value in list(_find_values(name, scope)) or list(_find_values(name, tree)):
                yield from expand(value, tree, scope, seen | {name})
        case _:
            yield node


def _find_values(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    for statement in ast.walk(scope):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield statement.value
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                for item, value in zip(target.elts, statement.value.elts, strict=False):
                    if isinstance(item, ast.Name) and item.id == name:
                        yield value
