"""What can be wrong with an answer."""


class UnreadableAnswerError(Exception):
    """An answer, or a value in a guess file, does not say what was asked for.

    The text is one sentence for people. ``help`` says what to write instead, if that is known.
    """

    def __init__(self, message: str, help_text: str | None = None) -> None:
        super().__init__(message)
        self.help = help_text
