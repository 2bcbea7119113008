"""Pickles as data: arrays, text, numbers, lists and dicts come out, and nothing is ever called.

A pickle is a program, and unpickling runs it. The python version of CIFAR is published as pickles,
so this module reads the few instructions that write down data and refuses every other one. It does
not use Python's unpickler: there is no way to an import, and no more memory is taken than a few
times the size of the file.
"""

from __future__ import annotations

import io
import math
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnsafePickleError", "read_pickle"]

_ARRAY, _DTYPE, _RECONSTRUCT, _ENCODE = "array", "dtype", "reconstruct", "encode"

# Names that stand for data. numpy moved its modules in version 2, so both spellings are met.
_NAMES = {
    "numpy ndarray": _ARRAY,
    "numpy dtype": _DTYPE,
    "numpy.core.multiarray _reconstruct": _RECONSTRUCT,
    "numpy._core.multiarray _reconstruct": _RECONSTRUCT,
    # How Python 3 writes bytes for Python 2: text to be encoded as Latin-1.
    "_codecs encode": _ENCODE,
}
_NUMBER = re.compile("b1|[iu][1248]|f[248]")
_LONGEST_QUOTE = 80


def read_pickle(content: bytes, name: str) -> Any:
    """Read a pickle that holds plain data.

    Text written by Python 2, which does not tell text from bytes, comes out as `str` in Latin-1.

    Args:
        content: The pickle's bytes.
        name: Where they come from, for messages.

    Returns:
        Numbers, text, bytes, lists, tuples and dicts, as they were written. An array of numbers is
        the whole, or a value of the dict that is the whole.

    Raises:
        UnsafePickleError: The pickle holds anything but data; a `ValueError`.
        ValueError: The pickle is cut short or damaged.

    Example:
        >>> import pickle
        >>> read_pickle(pickle.dumps({"labels": [3, 8]}, protocol=2), "batch")
        {'labels': [3, 8]}
        >>> read_pickle(pickle.dumps(print), "batch")
        Traceback (most recent call last):
            ...
        labelproof.data.pickles.UnsafePickleError: batch: refused: the pickle asks for
        'builtins print', which is code, not data
    """
    machine = _Machine(name, budget=len(content))
    try:
        for opcode, argument, _ in pickletools.genops(io.BytesIO(content)):
            if opcode.name == "STOP":
                return _finished(machine.pop())
            machine.run(opcode.name, argument)
    except UnsafePickleError:
        raise
    # A pickle that is damaged fails wherever its bytes lead: reading an argument, at an empty
    # stack, at a memo that was never written.
    except Exception as error:
        why = str(error)[:_LONGEST_QUOTE]
        raise ValueError(f"{name}: the pickle is cut short or damaged ({why})") from error
    raise ValueError(f"{name}: the pickle is cut short or damaged (no end)")


class UnsafePickleError(ValueError):
    """A pickle that asks for more than data."""


@dataclass(frozen=True)
class _Name:
    """One of the names that stand for data."""

    kind: str


@dataclass
class _Dtype:
    """A dtype that is being described: its code comes first, its byte order later."""

    code: str
    order: str = "|"


@dataclass
class _Array:
    """An array that is being described; `value` is there once it is."""

    value: NDArray[Any] | None = None


_MARK = object()


@dataclass
class _Machine:
    """The pickle machine, without the instructions that make anything but data."""

    name: str
    budget: int
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self, opcode: str, argument: Any) -> None:
        if opcode in _PUSHES_ITS_ARGUMENT:
            self.stack.append(argument)
        elif opcode in _INSTRUCTIONS:
            _INSTRUCTIONS[opcode](self, argument)
        else:
            raise self.refusal(f"the pickle uses {opcode}, which is not needed for data")

    def refusal(self, why: str) -> UnsafePickleError:
        return UnsafePickleError(f"{self.name}: refused: {why}")

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value was expected")
        return value

    def pop_to_mark(self) -> list[Any]:
        start = len(self.stack) - 1
        while self.stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise ValueError("no mark")
        values = self.stack[start + 1 :]
        del self.stack[start:]
        return values

    def pop_count(self, count: int) -> list[Any]:
        return [self.pop() for _ in range(count)][::-1]

    def memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("values appended to what is not a list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise ValueError("items set on what is not a dict")
        # Hashing a tuple in a tuple in a tuple, and so on, would overflow the C stack.
        if not all(type(key) in {str, bytes, int} for key in values[::2]):
            raise ValueError("a key that is neither text nor a number")
        target.update(zip(values[::2], values[1::2], strict=True))

    def make_dict(self, _: Any) -> None:
        values = self.pop_to_mark()
        self.stack.append({})
        self.set_items(values)

    def find_name(self, text: str) -> None:
        if text not in _NAMES:
            quote = text[:_LONGEST_QUOTE]
            raise self.refusal(f"the pickle asks for {quote!r}, which is code, not data")
        self.stack.append(_Name(_NAMES[text]))

    def find_stacked_name(self, _: Any) -> None:
        self.find_name(" ".join(self.pop_count(2)))

    def reduce(self, _: Any) -> None:
        function, arguments = self.pop_count(2)
        kind = function.kind if isinstance(function, _Name) else None
        if kind == _RECONSTRUCT:
            self.stack.append(_Array())
        elif kind == _DTYPE and type(arguments[0]) is str:
            self.stack.append(_Dtype(arguments[0]))
        elif kind == _ENCODE and type(arguments[0]) is str and arguments[1] == "latin1":
            self.stack.append(self.encode(arguments[0]))
        else:
            raise self.refusal("the pickle calls what is not meant to be called")

    def build(self, _: Any) -> None:
        target, state = self.pop_count(2)
        if isinstance(target, _Dtype) and state[1] in ("|", "<", ">"):
            target.order = state[1]
        elif isinstance(target, _Array) and target.value is None:
            target.value = self.array(state)
        else:
            raise self.refusal("the pickle sets the state of what is not an array")
        self.stack.append(target)

    def array(self, state: Any) -> NDArray[Any]:
        _, shape, described, fortran, content = state
        if not isinstance(described, _Dtype) or not _NUMBER.fullmatch(described.code):
            code = described.code if isinstance(described, _Dtype) else "?"
            raise self.refusal(
                f"the pickle holds an array of {code[:_LONGEST_QUOTE]!r}, expected one of numbers"
            )
        # The pattern leaves the byte order out, so it can be put in front.
        dtype = np.dtype(described.order + described.code)
        if isinstance(content, str):
            content = self.encode(content)
        if not isinstance(content, bytes) or len(content) != _count(shape) * dtype.itemsize:
            raise ValueError("an array whose bytes do not fit its shape")
        flat = np.frombuffer(content, dtype)
        return flat.reshape(shape, order="F" if fortran else "C")

    def encode(self, text: str) -> bytes:
        """Text as bytes; all of it together no longer than the file, where each is written once.

        Without a budget, a short pickle could ask for the same long text a thousand times.
        """
        self.budget -= len(text)
        if self.budget < 0:
            raise self.refusal("the pickle makes more data than it holds")
        return text.encode("latin-1")


def _count(shape: Any) -> int:
    if type(shape) is not tuple or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise ValueError("an array whose shape is not a shape")
    return math.prod(shape)


def _finished(value: Any) -> Any:
    """Put arrays in place of what described them, at the top and in a dict at the top."""
    if type(value) is dict:
        return {key: _array_of(item) for key, item in value.items()}
    return _array_of(value)


def _array_of(value: Any) -> Any:
    if isinstance(value, _Array):
        if value.value is None:
            raise ValueError("an array without content")
        return value.value
    if isinstance(value, _Dtype | _Name):
        raise ValueError("a name without an array")
    return value


_TEXT = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_TEXT_OR_BYTES = ("STRING", "BINSTRING", "SHORT_BINSTRING")
_BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8")
_WHOLE = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4")
_PUSHES_ITS_ARGUMENT = {*_TEXT, *_TEXT_OR_BYTES, *_BYTES, *_WHOLE, "FLOAT", "BINFLOAT"}
_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "MARK": lambda machine, _: machine.stack.append(_MARK),
    "POP": lambda machine, _: machine.stack.pop(),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "DICT": _Machine.make_dict,
    "LIST": lambda machine, _: machine.stack.append(machine.pop_to_mark()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.pop_count(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.pop_count(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.pop_count(3))),
    "APPEND": lambda machine, _: machine.append(machine.pop_count(1)),
    "APPENDS": lambda machine, _: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.pop_count(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "MEMOIZE": _Machine.memoize,
    "GLOBAL": _Machine.find_name,
    "STACK_GLOBAL": _Machine.find_stacked_name,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}
