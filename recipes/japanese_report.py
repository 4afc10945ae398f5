"""日本のビジネス文書: a business report in Japanese, in the form that its readers expect."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Text, Workflow, prompt, user
from promptkit.fragments import dedent, numbered, tag, truncate, untrusted

from ._text import require_text

#: Subject, summary, background, current state and issues, proposal, next steps, points to confirm.
HEADINGS: Final = ("件名", "要旨", "背景", "現状と課題", "提案", "今後の予定", "確認事項")

REGISTERS: Final = {
    "internal": dedent("""
        社内の上司が読みます。「です・ます」調の丁寧語で統一し、過度な敬語は避けてください。
        """),
    "customer": dedent("""
        社外のお客様が読みます。「です・ます」調で統一し、尊敬語と謙譲語を正しく使い分けてください。
        自社は「弊社」、相手は「貴社」と表記し、「いつもお世話になっております。」で書き始めてください。
        """),
}


@prompt(tags=["writing", "japanese"])
def japanese_report(
    subject: Annotated[str, Arg("The subject of the report, in any language", examples=["第1四半期の売上"])],
    material: Annotated[
        str,
        Arg("The notes, figures or text to report on, in any language", examples=["Q1: 12M yen, +8%"]),
    ],
    reader: Annotated[Literal["internal", "customer"], Arg("Who will read the report")] = "internal",
) -> Workflow:
    """Write a business report in Japanese, in the register and form that its readers expect."""
    notes = truncate(require_text(material, "material"), 60_000, keep="both")
    return user(
        Text.from_path(
            "japanese_report.md",
            subject=tag("subject", require_text(subject, "subject")),
            material=untrusted(notes, "material"),
            register=REGISTERS[reader],
            headings=numbered(HEADINGS),
        )
    )
