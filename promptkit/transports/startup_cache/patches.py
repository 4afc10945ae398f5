"""Patches that record, during a trace, what Python has no audit events for."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptkit.transports.startup_cache.tracing import ImportTrace

__all__ = ["noted_environment", "noted_links"]


@contextmanager
def noted_environment(trace: "ImportTrace") -> Iterator[None]:
    """
    Note which environment variables are read.
    """
    mappings: list[Any] = [os.environ]
    if sys.platform != "win32":
        mappings.append(os.environb)
    # A lookup encodes its key. Only iterating decodes keys, and then all of them are read.
    plain = [(mapping.encodekey, mapping.decodekey) for mapping in mappings]

    def noting(encode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def encode_noted(name: Any) -> Any:
            trace.note_variable(os.fsdecode(name))
            return encode(name)

        return encode_noted

    def noting_all(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def decode_noted(name: Any) -> Any:
            trace.note_variables()
            return decode(name)

        return decode_noted

    for mapping, (encode, decode) in zip(mappings, plain, strict=True):
        mapping.encodekey, mapping.decodekey = noting(encode), noting_all(decode)
    try:
        yield
    finally:
        for mapping, (encode, decode) in zip(mappings, plain, strict=True):
            mapping.encodekey, mapping.decodekey = encode, decode


@contextmanager
def noted_links(trace: "ImportTrace") -> Iterator[None]:
    """
    Note which links `os.path.realpath` follows, and where to.
    """
    paths: Any = os.path
    plain = paths.realpath

    def realpath(path: Any, **options: Any) -> Any:
        real = plain(path, **options)
        frame = sys._getframe(1)  # noqa: SLF001 (the caller)
        trace.note_link(os.fsdecode(path), os.fsdecode(real), frame)
        return real

    paths.realpath = realpath
    try:
        yield
    finally:
        paths.realpath = plain
