"""Text of files and clusters as messages may show it: nothing in it controls a terminal."""


def printable(text: str) -> str:
    """The text on one line, with escapes for newlines, control characters and the like."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def printable_lines(text: str) -> str:
    """The same for a message of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
