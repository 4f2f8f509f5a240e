"""Open a page in the user's browser, if there is one to see."""

import os
import sys
import webbrowser
from threading import Thread


def open_in_browser(url: str) -> bool:
    """Open ``url`` without waiting for it; False where no browser can be seen from here."""
    if not _has_screen():
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    # Some browsers keep the caller waiting until they are closed.
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    return True


def _has_screen() -> bool:
    """Whether a browser would be seen: one for the terminal cannot run the viewer."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
