"""What can be decided about a label."""

from __future__ import annotations

from labelproof.ranges import choose

__all__ = ["CHOICES", "plain_choice"]

CHOICES = ("keep", "accept", "another", "unsure")
"""Keep the label, accept the suggestion, give another class, or leave it open."""


def plain_choice(
    choice: str, *, given: str, suggested: str, label: str | None = None
) -> tuple[str, str | None]:
    """A choice and the label it comes to, called by the plainest name it has.

    Choosing the suggested class from a list is accepting the suggestion, and choosing the given one
    is keeping it: what is counted later should not depend on the key that was pressed.

    Args:
        choice: One of `CHOICES`.
        given: The label as it came.
        suggested: The class that was suggested instead.
        label: The class that was chosen, for `"another"`.

    Returns:
        The choice, and the label; `None` for one that is left open.

    Example:
        >>> plain_choice("accept", given="cat", suggested="dog")
        ('accept', 'dog')
        >>> plain_choice("another", given="cat", suggested="dog", label="cat")
        ('keep', 'cat')
        >>> plain_choice("unsure", given="cat", suggested="dog")
        ('unsure', None)
    """
    if choose("choice", choice, CHOICES) == "unsure":
        return "unsure", None
    wanted = {"keep": given, "accept": suggested, "another": label}[choice]
    if wanted is None:
        raise ValueError("label: expected the class for choice 'another', got none")
    if wanted == given:
        return "keep", given
    return ("accept" if wanted == suggested else "another"), wanted
