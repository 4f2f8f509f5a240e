"""The console commands ``analyze`` and ``kinetolint``, and ``python -m analyze``."""

import sys

INCOMPLETE = 3
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect it."""


def main() -> None:
    """Run the command line; say what to install where only ``capture`` was meant to run."""
    try:
        from analyze.cli import main as run  # noqa: PLC0415

        run()
    except ModuleNotFoundError as error:
        message = (
            f"analyze: the package {error.name} is missing; this installation can only capture."
            " Analyse elsewhere, or complete it: pip install kinetolint"
        )
        sys.stderr.write(f"{message}\n")
        sys.exit(INCOMPLETE)
    except KeyboardInterrupt:
        sys.stderr.write("analyze: interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
