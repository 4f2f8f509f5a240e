"""``python -m capture`` is the command ``capture``."""

from capture.cli import main

if __name__ == "__main__":
    main()
