"""Cases for each recipe: arguments to render, and arguments that the recipe rejects."""

from .analyze_code import analyze_code
from .analyze_project import analyze_project
from .code_review import code_review
from .coordinate_models import coordinate_models
from .debug_error import debug_error
from .describe_screenshot import describe_screenshot
from .explain_code import Reader, explain_code
from .git_commit import DIFF, git_commit
from .japanese_report import japanese_report
from .request_approval import request_approval
from .summarize_recording import summarize_recording
from .tune_for_model import tune_for_model
from .wall_bounce import wall_bounce

MEAN = "def mean(xs):\n    return sum(xs) / len(xs)"

analyze_code.case("the structure of a function", MEAN)
analyze_code.case("security of a shell command", "rm -rf $1", aspect="security", language="shell")
analyze_code.case("blank code", " ").refused("The code is empty")

analyze_project.case("source and log", "Why do uploads fail?", "upload.py", "upload.log")
analyze_project.case("source alone", "What does it retry?", "upload.py")
analyze_project.case("outside the project", "Which names are used?", "../code_review.py").refused("..")

code_review.case("a function", MEAN, intent="The mean of some numbers")
code_review.case("performance, in Go", "for {}", language="go", focus="performance")
code_review.case_wire("capitalized choices", {"code": MEAN, "language": "Python", "focus": "Security"})

coordinate_models.case("two models", "Translate the manual", "gpt-5, sonnet-4")
coordinate_models.case("a relay", "Shorten the report", "gpt-5, sonnet-4, opus-4.1", merge="relay")

debug_error.case("nothing tried", "KeyError: 'user'")
debug_error.case("something tried", "KeyError: 'user'", tried="I have logged in again.")

describe_screenshot.case("alternative text", "dialog.png")
describe_screenshot.case("a bug report", "dialog.png", use="bug-report")
describe_screenshot.case("a missing picture", "nothing.png").refused("nothing.png")

explain_code.case("for a newcomer", "xs[::-1]")
explain_code.case("for a beginner", "xs[::-1]", Reader.BEGINNER)

git_commit.case("a small change", DIFF)
git_commit.case("plain, with an issue", DIFF, "plain", "#42", body=False)
git_commit.case("a blank diff", " ").refused("The diff is empty")

japanese_report.case("for readers in the company", "第1四半期の売上", "Q1: 12M yen, +8%")
japanese_report.case("for a customer", "納期の変更", "Two weeks later: parts are missing", "customer")

request_approval.case("without a diff", "Drop the table of old logins, to free space")
request_approval.case("with a diff", "Retry more often", "staging", diff=DIFF)

summarize_recording.case("minutes", "chime.wav")
summarize_recording.case("actions only", "chime.wav", form="actions")

tune_for_model.case("for GPT", "gpt-5", "Compare the two offers")
tune_for_model.case("for Opus, with material", "opus-4.1", "Compare them", material="A: 10, B: 12")

wall_bounce.case("the default panel", "Tabs or spaces?")
wall_bounce.case("a single model", "Tabs or spaces?", "gpt-5").refused("at least two different models")
wall_bounce.case("too few words", "Tabs or spaces?", words=10).refused("too few for a reasoned answer")
