"""News: what one of several workers says, and the others need not say again."""

import os
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile

from promptkit.protocol.digests import digest_of_lines

__all__ = ["News"]


class News:
    """
    The last thing that any worker has said. To be made before the workers are forked.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 (it is kept as long as the process lives)

    if sys.platform != "win32":  # it cannot fork

        def is_new(self, stamps: Mapping[str, object], said: object) -> bool:
            """
            Return whether no other worker has just said the same, and note that this one does.

            Args:
                stamps:
                    Those of the files of which something is said.

                said:
                    What, by its `repr`.
            """
            import fcntl

            text = repr((sorted(stamps.items()), said))
            descriptor, digest = self._file.fileno(), digest_of_lines([text.encode(errors="replace")])
            fcntl.lockf(descriptor, fcntl.LOCK_EX)  # a worker that dies leaves no lock behind
            try:
                if os.pread(descriptor, len(digest), 0) == digest:
                    return False
                os.pwrite(descriptor, digest, 0)
                return True
            finally:
                fcntl.lockf(descriptor, fcntl.LOCK_UN)
