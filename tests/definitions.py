"""What each definition of the project's Python files refers to: other definitions, texts, and families whose members it lists.

A definition is a function, class or variable at the top of a module, and is named ``module:name``.  ``module:`` is what else a module does
when it is imported, ``module:*`` all of it.  Whoever calls a method of an object has it from somebody who refers to its class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

#: Top-level packages of definitions.
ROOMS = ("flashsim", "models", "algorithms", "traces", "tests")
_DOTTED = re.compile(rf"(?:{'|'.join(ROOMS)})(?:\.\w+)+(?::\w+)?\.?")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


@dataclass
class Definition:
    """What the text of one definition says; names are dotted import paths."""

    refers: set[str] = field(default_factory=set)
    #: Where it calls ``names()``; where it calls it only to ask whether a name is among them.
    lists: set[str] = field(default_factory=set)
    asks: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    docstrings: list[str] = field(default_factory=list)
    #: Parameters of its functions: fixtures, in a test.
    parameters: set[str] = field(default_factory=set)
    #: Names in its decorators, and of their arguments.
    decorators: set[str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    #: The import name of the family that it is.
    family: str = ""
    nodes: list[ast.stmt] = field(default_factory=list)

    @property
    def is_variable(self) -> bool:
        return any(isinstance(node, (ast.Assign, ast.AnnAssign)) for node in self.nodes)

    @property
    def code(self) -> str:
        """Its text without comments, docstrings and layout."""
        return "".join(ast.dump(_without_docstrings(node)) for node in self.nodes)


class _Reader(ast.NodeVisitor):
    """Adds to a definition what a part of the syntax tree says."""

    def __init__(self, module: Module, definition: Definition) -> None:
        self.module, self.definition, self._asks = module, definition, False
        self._hidden: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.definition.refers |= self._dotted(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = self._dotted(node)
        self.definition.refers |= dotted
        if not dotted:
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.definition.texts.append(node.value)
            if _DOTTED.fullmatch(node.value):
                self.definition.refers.add(node.value.replace(":", "."))

    def visit_Compare(self, node: ast.Compare) -> None:
        self._visit_question(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._visit_question(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "names":
            if self._asks:
                self.definition.asks |= self._dotted(node.func)
                return
            self.definition.lists |= self._dotted(node.func.value)
        if isinstance(node.func, ast.Name) and node.func.id == "Family" and isinstance(node.args[0], ast.Constant):
            self.definition.family = str(node.args[0].value)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.definition.parameters.add(node.arg)
        if node.annotation and self.module.has_live_hints:
            self.visit(node.annotation)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before, self._hidden = self._hidden, self._hidden | {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        self._visit_all(node, without=() if self.module.has_live_hints else (node.returns,))
        self._hidden = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node)

    def _visit_all(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, without: tuple[ast.AST | None, ...] = ()) -> None:
        docstring = node.body[0] if ast.get_docstring(node) else None
        for child in ast.iter_child_nodes(node):
            if child is not docstring and child not in without:
                self.visit(child)
        self.definition.docstrings.append(ast.get_docstring(node) or "")

    def _visit_question(self, node: ast.AST) -> None:
        before, self._asks = self._asks, True
        self.generic_visit(node)
        self._asks = before

    def _dotted(self, node: ast.AST) -> set[str]:
        """The import path of a name, or of an attribute of one."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        start = self.module.path_of(node.id) if isinstance(node, ast.Name) and node.id not in self._hidden else ""
        return {".".join([start, *attributes])} if start else set()


class Module:
    """The definitions of one module, and where its imported names come from."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.tree = name, ast.parse(text)
        #: Commands are made of annotations; elsewhere only type checkers read them.
        self.has_live_hints = name.startswith("flashsim.operations")
        self.imports: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.imports |= {each.asname or each.name.partition(".")[0]: _imported(each) for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                self.imports |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        self._own = {name for node in self.tree.body for name in names_of(node)}

    def path_of(self, name: str) -> str:
        return self.imports.get(name) or (f"{self.name}.{name}" if name in self._own else "")

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        found = {"": Definition(docstrings=[ast.get_docstring(self.tree) or ""])}
        for node in self.tree.body[1 if ast.get_docstring(self.tree) else 0 :]:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            names = names_of(node)
            is_plain = (
                isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign)) and names
            )
            for name in names if is_plain else [""]:
                definition = found.setdefault(name, Definition())
                _Reader(self, definition).visit(node)
                for each in (part for decorator in getattr(node, "decorator_list", ()) for part in ast.walk(decorator)):
                    if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in self._own:
                        found.setdefault(each.value.id, Definition()).refers.add(f"{self.name}.{name}")  # registered there
                    definition.decorators |= {each.attr} if isinstance(each, ast.Attribute) else set()
                    definition.keywords |= {each.arg} if isinstance(each, ast.keyword) and each.arg else set()
                definition.nodes.append(node)
            for name in [] if is_plain else names:
                found.setdefault(name, Definition())  # what the module does besides defines it
        return found

    def differences(self, before: Module | None) -> set[str]:
        """Definitions that another text of the module lacks, or has otherwise; ``module:name#`` where only docstrings differ."""
        old, new, changed = before.definitions if before else {}, self.definitions, set()
        for name in {*old, *new}:
            one, other = old.get(name), new.get(name)
            if not (one and other) or (one.code, one.refers) != (other.code, other.refers):
                changed.add(f"{self.name}:{name}")
            if not (one and other) or one.docstrings != other.docstrings:
                changed.add(f"{self.name}:{name}{'' if self.has_live_hints and name else '#'}")
        return changed


def _imported(alias: ast.alias) -> str:
    return alias.name if alias.asname else alias.name.partition(".")[0]


def names_of(node: ast.AST) -> list[str]:
    """The names that a statement at the top of a module defines, in its branches included."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return []
    return [name for child in ast.iter_child_nodes(node) for name in names_of(child)]


def _without_docstrings(node: ast.AST) -> ast.AST:
    for each in ast.walk(node):
        if isinstance(each, _DOCUMENTED) and ast.get_docstring(each):
            each.body = each.body[1:]
    return node


class Definitions:
    """The definitions of many modules, by import name, and how a dotted name leads to one."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.modules = {name: Module(name, text) for name, text in texts.items()}

    def __getitem__(self, definition: str) -> Definition | None:
        module, _, name = definition.partition(":")
        return self.modules[module].definitions.get(name) if module in self.modules else None

    def resolved(self, dotted: str) -> Iterator[str]:
        """The definitions that a dotted name means; a name that its module lacks stays one of it, and may have been removed."""
        parts = dotted.rstrip(".").split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                yield from self._in(module, parts[length]) if length < len(parts) else [f"{module}:*"]
                return

    def _in(self, module: str, name: str) -> Iterator[str]:
        found = self.modules[module]
        if name in found.definitions:
            yield f"{module}:{name}"
        elif name in found.imports:
            yield from self.resolved(found.imports[name])
        elif "__getattr__" in found.definitions and not name.startswith("_"):  # imported when it is first asked for
            yield f"{module}:__getattr__"
            places = [f"{module}.operations.face.{name}"] if module == "flashsim" else self.below(module)
            yield from (f"{each}:{name}" for each in places if each in self.modules and name in self.modules[each].definitions)
        else:
            yield f"{module}:{name}"

    def below(self, package: str) -> list[str]:
        return [name for name in self.modules if name.startswith(f"{package}.")]
