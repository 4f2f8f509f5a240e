"""What ends a command, as one line and an exit code."""


class CaptureError(Exception):
    """This machine cannot do what was asked: no such device, no torch, a folder that is read-only.

    The message is one line that says what is wrong, where, and what to do.
    """

    exit_code = 3


class RequestError(CaptureError):
    """What was asked for does not exist or is impossible: an unknown variant, an odd shape."""

    exit_code = 2
