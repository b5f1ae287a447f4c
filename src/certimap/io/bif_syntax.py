"""The grammar of the Bayesian network interchange format, as a recursive parser with line numbers.

    network  ::= block*
    block    ::= "network" [name] "{" property* "}"
               | "variable" name "{" (property | "type" "discrete" "[" size "]" "{" state, ... "}" ";")* "}"
               | "probability" "(" child ["|"] parent, ... ")" "{" (property | entries)* "}"
    entries  ::= ("table" | "default" | "(" state, ... ")") number, ... ";"
    property ::= "property" anything ";"

Commas may be left out, names may be quoted, and comments are written as in C++.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from certimap.model.errors import ModelError

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+', re.DOTALL)
_PUNCTUATION = frozenset("{}()[],;|")


class Token(NamedTuple):
    """A word or a punctuation mark, and where it starts."""

    text: str
    start: int
    quoted: bool = False

    @property
    def is_word(self) -> bool:
        return self.quoted or self.text not in _PUNCTUATION


@dataclass(frozen=True)
class VariableBlock:
    name: Token
    states: tuple[str, ...]


@dataclass(frozen=True)
class Entries:
    """Numbers of a probability block: the whole table, the default row, or the row of the parents' states `given`."""

    kind: str  # table, default, row
    at: Token
    given: tuple[Token, ...]
    numbers: tuple[Token, ...]


@dataclass(frozen=True)
class ProbabilityBlock:
    child: Token
    parents: tuple[Token, ...]
    entries: tuple[Entries, ...]


@dataclass
class Document:
    """What a file says, not yet checked for meaning."""

    path: str | Path
    text: str
    variables: list[VariableBlock] = field(default_factory=list)
    probabilities: list[ProbabilityBlock] = field(default_factory=list)

    def error(self, at: Token, message: str) -> ModelError:
        line = self.text.count("\n", 0, at.start) + 1
        return ModelError(f"{self.path}: line {line}: {message}")


def parse(path: str | Path, text: str) -> Document:
    """The blocks of a file."""
    return _Parser(Document(path, text)).document()


class _Parser:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._tokens = [
            Token(word.strip('"'), match.start(), word.startswith('"'))
            for match in _TOKEN.finditer(document.text)
            if not (word := match.group()).startswith(("//", "/*"))
        ]
        self._tokens.append(Token("", len(document.text)))  # the end
        self._next = 0

    def document(self) -> Document:
        while self._peek().text:
            keyword = self._word("'network', 'variable' or 'probability'")
            match keyword.text:
                case "network":
                    self._network()
                case "variable":
                    self._document.variables.append(self._variable())
                case "probability":
                    self._document.probabilities.append(self._probability())
                case other:
                    raise self._document.error(
                        keyword, f"expected 'network', 'variable' or 'probability', got {other!r}"
                    )
        return self._document

    def _network(self) -> None:
        if self._peek().is_word:
            self._take()
        self._expect("{")
        while not self._accept("}"):
            self._property("'property' or '}'")

    def _variable(self) -> VariableBlock:
        name = self._word("the variable's name")
        states: tuple[str, ...] | None = None
        self._expect("{")
        while not self._accept("}"):
            if self._peek().text == "type":
                states = self._type()
            else:
                self._property("'type', 'property' or '}'")
        if states is None:
            raise self._document.error(name, f"variable {name.text!r} has no type")
        return VariableBlock(name, states)

    def _type(self) -> tuple[str, ...]:
        self._take()
        self._expect("discrete")
        self._expect("[")
        size = self._word("the number of states")
        self._expect("]")
        self._expect("{")
        states = tuple(t.text for t in self._words("}", "a state"))
        self._expect(";")
        if size.text != str(len(states)):
            raise self._document.error(size, f"{size.text} states are announced, {len(states)} are listed")
        if len(set(states)) != len(states):
            raise self._document.error(size, f"a state occurs twice among {', '.join(states)}")
        return states

    def _probability(self) -> ProbabilityBlock:
        self._expect("(")
        child = self._word("the variable's name")
        _ = self._accept("|") or self._accept(",")
        parents = self._words(")", "a parent's name")
        entries = []
        self._expect("{")
        while not self._accept("}"):
            if self._peek().text in ("table", "default", "("):
                entries.append(self._entries(self._take()))
            else:
                self._property(f"entries, 'property' or '}}' for {child.text!r}")
        return ProbabilityBlock(child, tuple(parents), tuple(entries))

    def _entries(self, at: Token) -> Entries:
        given = tuple(self._words(")", "a state")) if at.text == "(" else ()
        kind = "row" if at.text == "(" else at.text
        return Entries(kind, at, given, tuple(self._words(";", "a number")))

    def _property(self, expected: str) -> None:
        keyword = self._take()
        if keyword.text != "property":
            raise self._document.error(keyword, f"expected {expected}, got {_shown(keyword)}")
        while not self._accept(";"):
            if not self._take().text:
                raise self._document.error(keyword, "the property does not end with ';'")

    def _words(self, end: str, what: str) -> list[Token]:
        words = []
        while not self._accept(end):
            words.append(self._word(what))
            self._accept(",")
        return words

    def _word(self, what: str) -> Token:
        token = self._take()
        if not token.text or not token.is_word:
            raise self._document.error(token, f"expected {what}, got {_shown(token)}")
        return token

    def _expect(self, text: str) -> None:
        token = self._take()
        if token.text != text:
            raise self._document.error(token, f"expected {text!r}, got {_shown(token)}")

    def _accept(self, text: str) -> bool:
        found = self._peek().text == text and not self._peek().quoted
        self._next += found
        return found

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _shown(token: Token) -> str:
    return repr(token.text) if token.text else "the end of the file"
