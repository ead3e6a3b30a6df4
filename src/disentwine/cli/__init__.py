"""The disentwine command; one module per verb."""

from __future__ import annotations

import signal
import sys
import warnings
from importlib.metadata import version as package_version
from typing import Annotated, Any

import typer

from disentwine.cli.data import data_app
from disentwine.cli.do import do, retrieve
from disentwine.cli.evaluate import evaluate
from disentwine.cli.runs import report, runs
from disentwine.cli.serve import serve
from disentwine.cli.study import study
from disentwine.cli.train import demo, train
from disentwine.errors import DisentwineError, is_out_of_memory

app = typer.Typer(
    name="disentwine",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Representations you can intervene on."""
    if version:
        print(f"disentwine {package_version('disentwine')}")
        raise typer.Exit


CTRL_C = 128 + signal.SIGINT

# `do RUN IMAGE -scale` is an action, not an option.
OF_VERBS: dict[Any, dict[str, Any]] = {do: {"ignore_unknown_options": True}}
for verb in (demo, train, evaluate, do, retrieve, report, study, runs, serve):
    app.command(context_settings=OF_VERBS.get(verb))(verb)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run the command; errors that a user can fix are one message and an exit code."""
    # Classifiers of metrics stop at their iteration limit; scikit-learn warns in nine lines each.
    for message in (".*(did not|failed to) converge", "The number of unique classes"):
        warnings.filterwarnings("ignore", message=message, module="sklearn")
    try:
        app()
    except DisentwineError as error:
        print(f"disentwine: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == CTRL_C:  # typer exits without a message
            print("disentwine: stopped", file=sys.stderr)
        raise
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        remedy = "check the name, the read and write permissions, and the free disk space"
        print(f"disentwine: {error}; {remedy}", file=sys.stderr)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        remedy = "try a smaller model, fewer or smaller images, or a smaller training.batch_size"
        print(f"disentwine: there is not enough memory; {remedy}", file=sys.stderr)
        sys.exit(1)
