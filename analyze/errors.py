"""What can go wrong for a user, each with its exit code.

Every error a user can cause derives from :class:`AnalyzeError`; the command line prints its text as
one line and exits with ``exit_code``. Anything else that escapes is a defect of this program.
"""


class AnalyzeError(Exception):
    """Base of the errors that are shown as one line instead of a traceback."""

    exit_code = 2


class NothingToCheckError(AnalyzeError):
    """The trace is readable, but it holds nothing that could be analysed."""

    exit_code = 2


class NoSuchForwardError(AnalyzeError):
    """The trace has no annotation of the name that one forward is to have.

    Attributes:
        hint: which names there are.
    """

    def __init__(self, words: str, hint: str, trace: str = "the trace") -> None:
        """Say so of a name, as ``words`` give it."""
        super().__init__(f"{words}: no annotation of that name in {trace}; {hint}")
        self.hint = hint


class TraceError(AnalyzeError):
    """A trace is missing, unreadable, or a file of another kind."""

    exit_code = 3


class RuleError(AnalyzeError):
    """A rule file is invalid, or a rule's own test fails."""

    exit_code = 4
