"""
The image that the `Dockerfile` describes.

CI builds it with Docker. These tests run its steps in the written order. Each stage is an overlay over the
file system of this machine, so every path is the real one, and programs see a read-only root that no user
owns. The tests need Linux, root and overlay mounts.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from tests.wire import line, modern

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"

#: A program that prints the modules of promptkit without bytecode.
WITHOUT_BYTECODE = """
from importlib.util import cache_from_source
from pathlib import Path
import promptkit
modules = Path(promptkit.__file__).parent.rglob("*.py")
print([str(module) for module in modules if not Path(cache_from_source(module)).exists()])
"""

#: The timeout of the steps, which install packages, in seconds.
TIMEOUT_S = 300

#: The first lines of the script that replaces `docker build`. All its mounts end with the script.
PROLOGUE = """
set -eu
mount -t tmpfs tmpfs .
cd "$PWD"
stage() {
    mkdir -p up$1 work$1 root$1
    mount -t overlay -o lowerdir=/,upperdir=up$1,workdir=work$1 overlay root$1
    mount -t proc proc root$1/proc
    mount --rbind /dev root$1/dev
    ln -sf "$PYTHON" root$1/usr/local/bin/python
    # Python can be in a folder that only root can enter.
    folder=$(dirname "$PYTHON")
    while [ "$folder" != / ]; do chmod a+x "root$1$folder"; folder=$(dirname "$folder"); done
    rm -rf root$1/srv && mkdir root$1/srv
}
"""


def instructions():
    """Return the instructions of the Dockerfile with their values, in order."""
    with DOCKERFILE.open("rb") as file:
        structure = DockerfileParser(fileobj=file).structure
    return [(step["instruction"], step["value"]) for step in structure if step["instruction"] != "COMMENT"]


def last_value(name):
    """Return the value of the last instruction with this name."""
    return [value for instruction, value in instructions() if instruction == name][-1]


def words(name):
    """Return the JSON array of the last instruction with this name."""
    value = last_value(name)
    return json.loads(value[value.index("[") :])


def build_script():
    """Return the shell script that builds the image, and the number N of its folder `rootN`."""
    lines, stage, folder, names, exports = [PROLOGUE], -1, "/", {}, []
    for instruction, value in instructions():
        if instruction == "FROM":
            stage += 1
            names[value.rpartition(" AS ")[2]] = stage
            lines.append(f"stage {stage}")
            folder, exports = "/", ["unset LC_ALL"]
        elif instruction == "ENV":
            exports.append(f"export {value}")
        elif instruction == "WORKDIR":
            folder = value
            lines.append(f"mkdir -p root{stage}{folder}")
        elif instruction == "COPY":
            lines += copy_commands(value, stage, folder, names)
        elif instruction == "RUN":
            inner = [*exports, f"cd {folder} && {value}"]
            lines.append(f"chroot root{stage} sh -c {shlex.quote('; '.join(inner))} >&2")
    return "\n".join(lines), stage


def copy_commands(value, stage, folder, names):
    """Return the commands for one COPY: files into a folder, or one folder to a path."""
    origin, *paths, target = (
        value.removeprefix("--from=").split() if "--from" in value else ("", *value.split())
    )
    source = f"root{names[origin]}" if origin else f"{ROOT}/"
    destination = f"root{stage}{Path(folder) / target}"
    if target.endswith("/"):
        return [f"mkdir -p {destination}", *(f"cp {source}{path} {destination}" for path in paths)]
    (path,) = paths
    return [f"mkdir -p {destination}", f"cp -a {source}{path}/. {destination}"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A function that runs a shell script without a network. The image is in the folder `$IMAGE`."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("overlays need Linux, root, and unshare")
    folder = tmp_path_factory.mktemp("image")
    script, stage = build_script()
    base, log = Path(sys.executable).resolve(), folder / "log"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "PYTHON": str(base), "IMAGE": f"root{stage}"}
    script += f"\nmount -o remount,ro root{stage}\necho built\nread _"
    with log.open("wb") as file:  # a pipe could fill up
        builder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
        )
    try:
        if builder.stdout.readline() != b"built\n":
            output = log.read_text(encoding="utf-8")
            if output.startswith(("mount", "unshare")):
                pytest.skip(f"overlays cannot be mounted: {output}")
            pytest.fail(f"the steps of the Dockerfile fail: {output}")

        def run(script, **settings):
            inside = f"ip link set lo up; cd {folder}; {script}"
            enter = [
                "nsenter",
                f"--mount=/proc/{builder.pid}/ns/mnt",
                "unshare",
                "--net",
                "sh",
                "-euc",
                inside,
            ]
            return subprocess.run(
                enter, env=environment, capture_output=True, timeout=60, check=False, **settings
            )

        yield run
    finally:
        builder.communicate(b"\n")


def as_in_docker(command):
    """
    Return a command line that runs *command* in the image as Docker does: as PID 1, with the image's user and
    environment.
    """
    steps = instructions()
    stage = max(index for index, (instruction, _) in enumerate(steps) if instruction == "FROM")
    exports = [f"export {value}" for instruction, value in steps[stage:] if instruction == "ENV"]
    inner = "; ".join([*exports, f"cd {last_value('WORKDIR')} && exec {shlex.join(command)}"])
    path = "PATH=/usr/local/bin:/usr/bin:/bin"
    wrapped = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "chroot",
        f"--userspec={last_value('USER')}",
        "$IMAGE",
        "env",
        "-i",
        path,
        "sh",
        "-c",
        inner,
    ]
    return " ".join(word if word == "$IMAGE" else shlex.quote(word) for word in wrapped)


#: Starts a child that leaves an orphan, and fails if the orphan exists long after its exit.
ORPHAN = """
import os, subprocess, time
number = int(subprocess.check_output(["sh", "-c", "sleep 0.1 >/dev/null & echo $!"]))
try:
    for _ in range(200):
        time.sleep(0.01)
        os.kill(number, 0)
except ProcessLookupError:
    raise SystemExit(0)
raise SystemExit(1)
"""


class TestInstructions:
    def test_init_is_the_first_process(self):
        """An init process in the image starts promptkit."""
        assert words("ENTRYPOINT") == ["tini", "--", "promptkit"]
        assert ("COPY", "--from=build /usr/bin/tini /usr/bin/") in instructions()

    def test_user_is_not_root(self):
        """The user is given as a number other than 0."""
        assert [int(number) > 0 for number in last_value("USER").split(":")] == [True, True]

    def test_the_last_step_checks_the_recipes(self):
        """An image with invalid recipes is not built."""
        assert last_value("RUN").endswith("promptkit check recipes")

    def test_commands_match_the_documentation(self):
        """The page on deployment contains the commands at the top of the Dockerfile."""
        page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
        commands = [
            row.removeprefix("#   ") for row in DOCKERFILE.read_text().splitlines() if row.startswith("#   ")
        ]

        assert len(commands) == 3
        assert [command for command in commands if command not in page] == []

    def test_health_check_uses_python(self):
        """The health check uses Python, because the image has no curl."""
        assert words("HEALTHCHECK")[:2] == ["python", "-c"]


@pytest.mark.installs
@pytest.mark.timeout(TIMEOUT_S)
class TestImage:
    def test_image_runs_and_is_healthy(self, image):
        """The image runs as an unprivileged user with a read-only root, and its health check passes."""
        serve = as_in_docker([*words("ENTRYPOINT"), *words("CMD")])
        check = as_in_docker(words("HEALTHCHECK"))
        done = image(
            f"{check} 2>/dev/null && exit 3; {serve} & for _ in $(seq 100); do {check} 2>/dev/null && break;"
            f" sleep 0.1; done; {check}; kill $(cat /proc/$!/task/$!/children); wait $!"
        )

        assert (done.returncode, done.stdout) == (0, b""), done.stderr
        assert b"serving at http://0.0.0.0:8000/mcp" in done.stderr

    @pytest.mark.parametrize(("first", "code"), [(slice(0, -1), 0), (slice(0, 0), 1)], ids=["tini", "python"])
    def test_orphans_are_reaped(self, image, first, code):
        """An orphan of a prompt's child is reaped with tini, but not with Python as the first process."""
        done = image(as_in_docker([*words("ENTRYPOINT")[first], "python", "-c", ORPHAN]))

        assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")

    def test_image_is_read_only(self, image):
        """Neither the user nor root can write into the image, and the user id is 65534."""
        done = image(as_in_docker(["sh", "-c", "id -u; touch /srv/x /tmp/x"]) + "|| touch $IMAGE/srv/x")

        assert (done.returncode, done.stdout.split()) == (1, [b"65534"])
        assert done.stderr.count(b"Read-only file system") == 3

    def test_image_serves_over_stdio(self, image):
        """The image serves a client over stdio without logging."""
        # The input ends at once, and a slow machine needs more than a second to import the recipes.
        command = [*words("ENTRYPOINT"), "serve", "recipes", "--grace", "60"]
        stdin = line(modern(1, "prompts/list")) + line(modern(2, "prompts/get", {"name": "code_review"}))
        done = image(as_in_docker(command), input=stdin)
        replies = sorted(map(json.loads, done.stdout.splitlines()), key=lambda reply: reply["id"])

        assert (done.returncode, done.stderr) == (0, b"")
        assert [reply["id"] for reply in replies] == [1, 2]
        assert "code_review" in [prompt["name"] for prompt in replies[0]["result"]["prompts"]]

    def test_bytecode_is_in_the_image(self, image):
        """Each module of promptkit has its bytecode, because a read-only image cannot store it at startup."""
        done = image(as_in_docker(["python", "-c", WITHOUT_BYTECODE]))

        assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")
