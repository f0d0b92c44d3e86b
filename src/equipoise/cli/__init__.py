"""The command `equipoise`: one module per command, each an argument list and a few calls.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 failure, 2 usage, 130 interrupted.
What takes long to load is loaded inside the functions that need it, so that help comes at once.
"""

from equipoise.cli.app import app, main

__all__ = ["app", "main"]
