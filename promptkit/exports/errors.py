"""What is raised when a vendor cannot take what a prompt says."""

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError

__all__ = ["ExportError", "UnfitPart"]


class UnfitPart(Struct, frozen=True):
    """
    A message that a vendor cannot take.

    Args:
        message:
            Its number in the workflow, from 1 on.

        role:
            Who speaks: ``"user"`` or ``"assistant"``.

        kind:
            What it holds, as a MIME type.

        remedy:
            What to do about it.
    """

    message: int
    role: str
    kind: str
    remedy: str

    def __str__(self) -> str:
        return f"message {self.message} holds {self.kind} of the {self.role}: {self.remedy}"


class ExportError(PromptkitError, ValueError):
    """
    A workflow holds what a vendor cannot take.

    Args:
        vendor:
            Whose form was wanted.

        parts:
            Each message that cannot be taken, and what to do about it.
    """

    def __init__(self, vendor: str, parts: tuple[UnfitPart, ...]) -> None:
        super().__init__(vendor, parts)
        self.vendor = vendor
        self.parts = parts

    def __str__(self) -> str:
        return f"{self.reason} (lossy=True sends text in place of what cannot be taken)"

    @property
    def reason(self) -> str:
        """
        What cannot be taken, and what to do about each.
        """
        return f"{self.vendor} cannot take it: {'; '.join(map(str, self.parts))}"
