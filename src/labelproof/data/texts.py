"""Texts as terms: their words, and the pairs of words that follow each other.

A row holds the ids of its terms, 0 where it has no more. What a term weighs, its *rarity*, grows as
fewer rows have it (TF-IDF), and the terms of a row have a length of 1 together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEWEST_ROWS = 2  # that a term needs, as a single row does not generalise
_MOST_TERMS = 50_000
_LONGEST = 5000  # characters of a text that are read
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese letters, which are read one by one."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]{{2,}}")


def words_of(text: str) -> list[str]:
    """The words of a text in their order, in lower case."""
    return _WORD.findall(text[:_LONGEST].casefold())


def terms_of(text: str) -> list[str]:
    """The different terms of a text.

    >>> terms_of("The blue sky")
    ['the', 'blue', 'sky', 'the blue', 'blue sky']
    """
    words = words_of(text)
    return [*dict.fromkeys([*words, *map(" ".join, pairwise(words))])]


def shared_terms(texts: Sequence[str]) -> dict[str, int]:
    """The number of texts that have each term, the most frequent first.

    >>> shared_terms(["The blue sky", "a blue sea", "the blue sky!"])
    {'blue': 3, 'blue sky': 2, 'sky': 2, 'the': 2, 'the blue': 2}
    """
    counts = Counter(term for text in texts for term in terms_of(text))
    order = sorted((-rows, term) for term, rows in counts.items() if rows >= FEWEST_ROWS)
    return {term: -rows for rows, term in order[:_MOST_TERMS]}


def encode_texts(
    texts: Sequence[str], words: Mapping[str, int], numbered: Mapping[str, int], ids: int
) -> NDArray[np.float32]:
    """A feature for each of the `words`, 1 if a text has it, and the ids of its rarest terms.

    >>> encode_texts(["blue sky"], {"sky": 0}, {"blue": 1, "sky": 2, "blue sky": 3}, 2)
    array([[1., 3., 2.]], dtype=float32)
    """
    encoded = np.zeros((len(texts), len(words) + ids), np.float32)
    for row, text in zip(encoded, texts, strict=True):
        terms = terms_of(text)
        row[[words[term] for term in terms if term in words]] = 1
        found = sorted((numbered[term] for term in terms if term in numbered), reverse=True)[:ids]
        row[len(words) : len(words) + len(found)] = found
    return encoded


def term_rarity(terms: NDArray[np.int32]) -> NDArray[np.float64]:
    """The weight of each id among the rows `(N, L)`; 0 for the id 0."""
    rarity = 1 + np.log((1 + len(terms)) / (1 + np.bincount(terms.ravel(), minlength=1)))
    rarity[0] = 0.0
    return rarity


def weigh_terms(terms: NDArray[np.int32], rarity: NDArray[np.float64]) -> csr_array:
    """Rows of terms as a sparse matrix of weights, `(N, ids)`; unknown ids weigh nothing.

    >>> weigh_terms(np.array([[2, 1], [2, 9]], np.int32), np.array([0.0, 3.0, 4.0])).toarray()
    array([[0. , 0.6, 0.8],
           [0. , 0. , 1. ]])
    """
    from scipy.sparse import csr_array  # imported here, since every command would wait for it

    known = np.where(terms < len(rarity), terms, 0)
    row, place = np.nonzero(known)
    ids = known[row, place]
    length = np.sqrt(np.bincount(row, rarity[ids] ** 2, minlength=len(terms)))
    return csr_array((rarity[ids] / length[row], (row, ids)), shape=(len(terms), len(rarity)))
