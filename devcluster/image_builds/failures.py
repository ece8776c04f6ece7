"""How a build can fail."""


class ImageNotBuilt(Exception):
    """An image could not be built; the message says which, and what the tool said last."""
