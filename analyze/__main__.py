"""``python -m analyze`` is the command ``analyze``."""

from analyze.cli import main

if __name__ == "__main__":
    main()
