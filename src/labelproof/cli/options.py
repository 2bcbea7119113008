"""Commands of plain functions: a parameter is an option, and its help is in the docstring's `Args`.

A command that has a verb takes the verb's arguments as well, with the same defaults and help. They
are read from the verb's source: importing it would load torch and delay `--help` by seconds.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any

import typer

from labelproof.cli.main import show_warnings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

_RARE = {
    *("annotators", "group", "decimal", "thousands", "class_names", "batch_size"),
    *("learning_rate", "l1", "folds"),
    *("augmentation", "algorithm", "balanced", "validation", "weights", "loss_file", "workers"),
    *("image_memory", "human_labels", "data_root", "strict", "skip_unreadable", "compile"),
    *("checkpoint_seconds", "tensorboard", "prune", "assign"),
}
"""Options that the help shows in a separate panel."""

_FLAGS = {"all_classes": "all", "assign": "set", "losses": "loss", "open_page": "open"}
"""Options whose names differ from their parameters."""

_LEAST = {
    0: (
        *("at_once", "checkpoint_seconds", "folds", "image_memory", "processes", "seconds"),
        "workers",
    ),
    1: ("cpus_per_run", "samples", "timeout", "trials"),
    10: ("images",),
}
"""The smallest values of options, checked while arguments are parsed."""

_ENVIRONMENT = {"data_root": "LABELPROOF_DATA", "mirror": "LABELPROOF_MIRROR"}

LOSS_FILES = "LABELPROOF_LOSSES"
"""As in `labelproof.losses.names`, which imports torch."""

_HELP = {
    "run": "The run's folder.",
    "strict": "Raise an error for unusable examples instead of leaving them out.",
    "skip_unreadable": "Leave out unreadable images and rows without a label, with a warning.",
    "loss_file": "A Python file that defines your own losses, LOSSES = {'mine': MyLoss}. Its code "
    f"runs. {LOSS_FILES} in the environment does the same.",
    "human_labels": "The file of human labels, for --noise human:WHICH; by default "
    "cifar-n/cifar10n.npz or CIFAR-10_human.pt in --data-root.",
    "open_page": "Open the page in a browser.",
    "records": "Folder of the records, one small file per run.",
    "dataset": "mnist, cifar10, cifar100 or webvision; by default the table's only one.",
    "methods": "Rows or lines, separated by spaces or commas, such as 'CE CE+SR', by default the "
    "paper's; also a loss as text, such as 'gce(q=0.5)+sr'.",
    "columns": "Columns, such as 0.4,0.8 or '0.4 0.8'; by default the paper's.",
}
"""Help of options that several commands share and no verb has."""


_LOSS_FILE = Parameter(
    "loss_file", Parameter.KEYWORD_ONLY, default=None, annotation=list[Path] | None
)


def takes(
    verb: str = "", *, settings: Sequence[str] = (), losses: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function; positional parameters become arguments, others options.

    Args:
        verb: The function of `labelproof.verbs` whose arguments the command takes as well, such as
            `run.evaluate`. The function gets them as `**given`.
        settings: Fields of `Configuration` that the command takes, too.
        losses: Whether it takes files that define losses, which are read before it starts.
    """
    file, _, name = (verb or "fit").partition(".")
    read = read_source(f"verbs/{file}.py", name or file)
    configuration = read_source("training/configuration.py", "Configuration")
    fields = [each for each in _fields(configuration) if each.name in settings]
    theirs = [*_parameters(read)] if verb else []

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters.values()
        first = [each for each in own if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        last = [each for each in own if each.kind is Parameter.KEYWORD_ONLY]
        last += [_LOSS_FILE] * losses
        parameters = {each.name: each for each in (*first, *theirs, *fields, *last, *first)}
        texts: dict[str, str] = {}
        for node in (configuration, read_source("verbs/fit.py", "fit"), read):
            texts |= describe_arguments(ast.get_docstring(node) or "")
        texts |= _HELP | describe_arguments(inspect.getdoc(function) or "")

        @functools.wraps(function)
        def command(**given: Any) -> None:
            _register_losses(given.pop("loss_file", None) or ())
            if "strict" in given:
                given["on_error"] = "raise" if given.pop("strict") else "skip"
            if "skip_unreadable" in given:
                given["on_error"] = "skip" if given.pop("skip_unreadable") else "raise"
            with show_warnings():
                function(**given)

        command.__doc__ = without_arguments(inspect.getdoc(function) or "")
        command.__annotations__ = {}
        # The help names other options as they are typed.
        flags = {f"`{name}`": _flag(name) for name in parameters}
        texts = {
            name: re.sub("`.*?`", lambda match: flags.get(match[0], match[0].strip("`")), text)
            for name, text in texts.items()
        }
        typed = [_as_option(each, texts) for each in parameters.values()]
        command.__signature__ = inspect.Signature(typed)  # pyright: ignore
        return command

    return decorate


@functools.cache
def read_source(file: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """A function or class of the package, without importing it."""
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    return next(node for node in nodes if node.name == name)


def _parameters(node: Any) -> Iterator[Parameter]:
    """The arguments of a function that have a default."""
    arguments = node.args
    defaults = zip(reversed(arguments.args), reversed(arguments.defaults), strict=False)
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in (*reversed([*defaults]), *keywords):
        if argument.arg != "progress":
            value, kind = ast.literal_eval(default), _kind(ast.unparse(argument.annotation))
            value = None if value == () else value
            yield Parameter(argument.arg, Parameter.KEYWORD_ONLY, default=value, annotation=kind)


def _fields(node: Any) -> Iterator[Parameter]:
    """The fields of a dataclass, each with the default `None`."""
    for field in node.body:
        if isinstance(field, ast.AnnAssign):
            name, kind = ast.unparse(field.target), _kind(ast.unparse(field.annotation))
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _kind(annotation: str) -> Any:
    """The type of an option, by the annotation of its argument.

    >>> _kind("str | os.PathLike[str] | None").__name__, _kind("float | None").__name__
    ('Path', 'float')
    """
    first = annotation.partition(" | ")[0]
    if first.startswith("tuple") or "Sequence" in annotation:
        return list[str]
    if "PathLike" in annotation:
        return Path
    return {"bool": bool, "int": int, "float": float}.get(first, str)


_ARGUMENTS = re.compile(r"^(?:Args|Attributes):\n((?: {4}.*\n?|\n)*)", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)


def describe_arguments(text: str) -> dict[str, str]:
    r"""The arguments that a docstring describes, without those that refer to `fit`.

    >>> describe_arguments("Train.\n\nArgs:\n    loss: Such as `ce`.\n    seed: See `fit`.\n")
    {'loss': 'Such as `ce`.'}
    """
    section = _ARGUMENTS.search(text)
    found = _ARGUMENT.findall(section[1] if section else "")
    plain = {name: " ".join(words.split()) for name, words in found}
    return {name: words for name, words in plain.items() if words != "See `fit`."}


def without_arguments(text: str) -> str:
    r"""A docstring without its list of arguments, each paragraph on one line for any width.

    >>> without_arguments("Train.\n\nOn a table,\nor:\n\n    fit a.csv\n\nArgs:\n    loss: Any.")
    'Train.\n\nOn a table, or:\n\n    fit a.csv'
    """
    return re.sub(r"(?<=\S)\n(?=\S)", " ", _ARGUMENTS.sub("", text)).strip()


def _flag(name: str) -> str:
    return f"--{_FLAGS.get(name, name).replace('_', '-')}"


def _as_option(parameter: Parameter, texts: Mapping[str, str]) -> Parameter:
    """A parameter as typer takes it."""
    name, default, kind = parameter.name, parameter.default, parameter.annotation
    if name == "on_error":  # the flag switches to what is not the default
        name, default, kind = "strict" if default == "skip" else "skip_unreadable", False, bool
    if default is Parameter.empty:
        default = ...
    least = next((number for number, names in _LEAST.items() if name in names), None)
    more = {"help": texts[name], "show_default": default not in (None, False, ...)}
    more |= {"envvar": _ENVIRONMENT.get(name), "min": least}
    if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD:
        taken = typer.Argument(default, metavar=name.upper(), **more)
    else:
        flag, both = _flag(name), kind in (bool, bool | None) and default is not False
        written = f"{flag}/{flag.replace('--', '--no-')}" if both else flag
        if str(kind).startswith("list"):
            more |= {"help": f"{more['help']} Repeatable.", "metavar": "<str>"}
        panel = "More options" if name in _RARE else None
        taken = typer.Option(default, written, rich_help_panel=panel, **more)
    if default is None:
        kind = kind | None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=taken, annotation=kind)


def _register_losses(files: Sequence[Path]) -> None:
    """Name files of losses in the environment, where worker processes find them, too."""
    if files:
        before = [os.environ[LOSS_FILES]] if os.environ.get(LOSS_FILES) else []
        named = [str(file.expanduser().resolve()) for file in files]
        os.environ[LOSS_FILES] = os.pathsep.join([*named, *before])
        from labelproof.losses.names import known_losses

        known_losses()  # raises errors in a file before anything starts


def parse_seeds(text: str) -> list[int]:
    """Read seeds.

    >>> parse_seeds("1,2,3")
    [1, 2, 3]
    >>> parse_seeds("1-3,7")
    [1, 2, 3, 7]
    >>> parse_seeds("1,1")
    Traceback (most recent call last):
        ...
    ValueError: seeds: expected different numbers, such as 1,2,3 or 1-3, got '1,1'
    """
    parts = [re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part) for part in text.split(",")]
    ranges = [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part]
    seeds = [seed for each in ranges for seed in each]
    if len(ranges) < len(parts) or not all(ranges) or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different numbers, such as 1,2,3 or 1-3, got {text!r}")
    return seeds


_BETWEEN = re.compile(r"[\s,]+(?![^()]*\))")
"""Spaces and commas, but not those within the parentheses of a loss."""


def split_names(text: str | None) -> list[str]:
    """Names that are separated by spaces or commas.

    >>> split_names("CE, CE+SR gce(q=0.5, clamp=1e-7)")
    ['CE', 'CE+SR', 'gce(q=0.5, clamp=1e-7)']
    >>> split_names(None)
    []
    """
    return [name for name in _BETWEEN.split(text or "") if name]


def output_file(written: str, *, example: str) -> Path:
    """The path that `--output` names, or an error before anything is computed.

    >>> output_file("exports/", example="model.onnx")
    Traceback (most recent call last):
        ...
    ValueError: --output: expected a file such as model.onnx, got exports/
    """
    path = Path(written)
    folder = written.endswith(("/", os.sep)) or path.is_dir()
    if folder or written == "-" or path.suffix.lower() in (".gz", ".parquet", ".xlsx"):
        raise ValueError(f"--output: expected a file such as {example}, got {written}")
    return path


def read_settings(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Read settings of the form NAME=VALUE; strings need no quotes.

    >>> read_assignments(["momentum=0.8", "optimizer=adamw", "nesterov=true"])
    {'momentum': 0.8, 'optimizer': 'adamw', 'nesterov': True}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ValueError(f"--set: expected NAME=VALUE, got {text!r}")
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            values[name] = value
    return values
