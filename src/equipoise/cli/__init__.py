"""The command line `equipoise`: one module of commands per subject, each command an argument list and a few calls.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 failure, 2 usage, 130 interrupted.
Slow imports are inside the functions that need them, so that help appears at once.
"""

from equipoise.cli.app import app, main

__all__ = ["app", "main"]
