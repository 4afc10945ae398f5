"""
Ranking of short strings by the words that they share with a request, using TF-IDF and cosine similarity.

The ranking recognizes neither synonyms nor meaning. A model may make a better choice, or a worse one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import log, sqrt
from typing import Final

#: Words, and single characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
_WORD: Final = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)

#: Words that do not indicate a topic: common English words, and words common in skills and requests.
_WITHOUT_TOPIC: Final = """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could d did do does doing don down during each etc few for from further get had has have having
    he her here hers him his how i if in into is it its itself just ll let m make me more most my no nor not
    now of off on once only or other our out over own please re s same she should so some such t than that the
    their them then there these they this those through
    to too under until up us ve very via was we were what when
    where which while who why will with would you your yours

    ask asked asking asks based help helps including like mention mentions need needs provide provides request
    requests skill skills task tasks trigger triggers use used user users uses using want wants whenever
"""
_STOP_WORDS: Final = frozenset(_WITHOUT_TOPIC.split())

_SUFFIXES: Final = ("ing", "edly", "ed", "es", "s")


def _stem(word: str) -> str:
    """Return an English word without its ending, so that 'reviews' and 'reviewing' are equal."""
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4 and not word.endswith("ss"):
            word = word.removesuffix(suffix)
            return word[:-1] if word[-1] == word[-2] and word[-1] not in "ls" else word.removesuffix("e")
    return word.removesuffix("e") if len(word) > 4 else word


def words_of(text: str) -> list[str]:
    """Return the words of *text* that may indicate its topic, without their endings."""
    words = re.findall(_WORD, text.casefold())
    return [_stem(word) for word in words if word not in _STOP_WORDS]


class Ranking:
    """
    Ranks strings by their similarity to a request, and finds strings that are similar to each other.

    Args:
        texts:
            The strings.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words_of(text)) for text in texts]
        frequencies = Counter(word for count in counts for word in count)
        self._weights = {
            word: log((1 + len(texts)) / (1 + frequency)) + 1 for word, frequency in frequencies.items()
        }
        self._by_word: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._vectors = [self._vector(count) for count in counts]
        for number, vector in enumerate(self._vectors):
            for word, weight in vector.items():
                self._by_word[word].append((number, weight))

    def _vector(self, count: Counter[str]) -> dict[str, float]:
        """Return the weight of each word in a string. The squares of the weights add up to 1."""
        weights = {word: number * self._weights.get(word, 0.0) for word, number in count.items()}
        length = sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {word: weight / length for word, weight in weights.items()}

    def rank(self, request: str) -> list[tuple[float, int]]:
        """Return the cosine and the index of each string that shares a word with *request*, best first."""
        cosines = self._cosines(self._vector(Counter(words_of(request))))
        return sorted(
            ((cosine, number) for number, cosine in cosines.items()), key=lambda one: (-one[0], one[1])
        )

    def similar_pairs(self, above: float) -> Iterator[tuple[float, int, int]]:
        """Yield the cosine and the indexes of each pair of strings whose cosine exceeds *above*."""
        for number, vector in enumerate(self._vectors):
            for other, cosine in self._cosines(vector).items():
                if other > number and cosine > above:
                    yield cosine, number, other

    def _cosines(self, vector: dict[str, float]) -> dict[int, float]:
        cosines: dict[int, float] = defaultdict(float)
        for word, weight in vector.items():
            for number, other in self._by_word.get(word, ()):
                cosines[number] += weight * other
        return cosines


def best_matches(texts: Sequence[str], query: str) -> Sequence[int]:
    """
    Return the indexes of the texts that share a word with *query*, best first; all if *query* has no words.
    """
    return [number for _, number in Ranking(texts).rank(query)] if words_of(query) else range(len(texts))
