"""
The image that the `Dockerfile` describes.

CI builds it with Docker. Here its steps are carried out in the order in which they are written: each stage is
an overlay over the file system of this machine, so every path is the real one, and what is run sees a root
that cannot be written and belongs to nobody. That needs Linux, root and overlay mounts.
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
START_TIMES = Path(__file__).with_name("start_times.py")

#: How often each command is started.
ROUNDS = 15

#: How long the steps may take, in seconds: they install packages.
PATIENT = 300

#: The first lines of the script that stands in for `docker build`. Nothing of it outlives the script.
BEGIN = """
set -eu
mount -t tmpfs tmpfs .
cd "$PWD"
stage() {
    mkdir -p up$1 work$1 root$1
    mount -t overlay -o lowerdir=/,upperdir=up$1,workdir=work$1 overlay root$1
    mount -t proc proc root$1/proc
    mount --rbind /dev root$1/dev
    ln -sf "$PYTHON" root$1/usr/local/bin/python
    # It may be in a folder that only root can enter.
    folder=$(dirname "$PYTHON")
    while [ "$folder" != / ]; do chmod a+x "root$1$folder"; folder=$(dirname "$folder"); done
    rm -rf root$1/srv && mkdir root$1/srv
}
"""


def instructions():
    """Return the instructions of the Dockerfile with their values, in order."""
    with DOCKERFILE.open("rb") as file:
        found = DockerfileParser(fileobj=file).structure
    return [(step["instruction"], step["value"]) for step in found if step["instruction"] != "COMMENT"]


def last(name):
    """Return the value of the last instruction of a name."""
    return [value for instruction, value in instructions() if instruction == name][-1]


def words(name):
    """Return the words of the last instruction of a name, which has them as JSON."""
    value = last(name)
    return json.loads(value[value.index("[") :])


def build_script():
    """Return the shell script that carries out the steps; the image is in the folder `root`N in the end."""
    lines, stage, folder, names, exports = [BEGIN], -1, "/", {}, []
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
            lines += copies(value, stage, folder, names)
        elif instruction == "RUN":
            inner = [*exports, f"cd {folder} && {value}"]
            lines.append(f"chroot root{stage} sh -c {shlex.quote('; '.join(inner))} >&2")
    return "\n".join(lines), stage


def copies(value, stage, folder, names):
    """Return the commands for one COPY: files into a folder, or one folder to a path."""
    origin, *paths, target = (
        value.removeprefix("--from=").split() if "--from" in value else ("", *value.split())
    )
    source = f"root{names[origin]}" if origin else f"{ROOT}/"
    place = f"root{stage}{Path(folder) / target}"
    if target.endswith("/"):
        return [f"mkdir -p {place}", *(f"cp {source}{path} {place}" for path in paths)]
    (path,) = paths
    return [f"mkdir -p {place}", f"cp -a {source}{path}/. {place}"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A function that runs a shell script beside the image, whose folder is `$IMAGE`, without a network."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("overlays need Linux, root, and unshare")
    folder = tmp_path_factory.mktemp("image")
    script, stage = build_script()
    base, log = Path(sys.executable).resolve(), folder / "log"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "PYTHON": str(base), "IMAGE": f"root{stage}"}
    script += f"\nmount -o remount,ro root{stage}\necho built\nread _"
    with log.open("wb") as file:  # a pipe could be full before the end
        held = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
        )
    try:
        if held.stdout.readline() != b"built\n":
            said = log.read_text(encoding="utf-8")
            if said.startswith(("mount", "unshare")):
                pytest.skip(f"overlays cannot be mounted: {said}")
            pytest.fail(f"the steps of the Dockerfile fail: {said}")

        def run(script, **settings):
            inside = f"ip link set lo up; cd {folder}; {script}"
            enter = ["nsenter", f"--mount=/proc/{held.pid}/ns/mnt", "unshare", "--net", "sh", "-euc", inside]
            return subprocess.run(
                enter, env=environment, capture_output=True, timeout=60, check=False, **settings
            )

        yield run
    finally:
        held.communicate(b"\n")


def as_docker_does(command):
    """Return what runs a command in the image: as its first process, as its user, in its environment."""
    found = instructions()
    begun = max(place for place, (instruction, _) in enumerate(found) if instruction == "FROM")
    exports = [f"export {value}" for instruction, value in found[begun:] if instruction == "ENV"]
    inner = "; ".join([*exports, f"cd {last('WORKDIR')} && exec {shlex.join(command)}"])
    path = "PATH=/usr/local/bin:/usr/bin:/bin"
    wrapped = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "chroot",
        f"--userspec={last('USER')}",
        "$IMAGE",
        "env",
        "-i",
        path,
        "sh",
        "-c",
        inner,
    ]
    return " ".join(word if word == "$IMAGE" else shlex.quote(word) for word in wrapped)


#: Starts a child that leaves one of its own behind, and fails if that is there long after its end.
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


class TestLines:
    def test_an_init_is_the_first_process(self):
        """It starts promptkit, and is in the image."""
        assert words("ENTRYPOINT") == ["tini", "--", "promptkit"]
        assert ("COPY", "--from=build /usr/bin/tini /usr/bin/") in instructions()

    def test_it_runs_as_nobody(self):
        """The user is a number, and not root's."""
        assert [int(number) > 0 for number in last("USER").split(":")] == [True, True]

    def test_the_last_step_checks_the_recipes(self):
        """An image with faulty recipes is not built."""
        assert last("RUN").endswith("promptkit check recipes")

    def test_what_is_run_is_what_the_documentation_says(self):
        """The page on deployment has the commands that the file opens with."""
        page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
        told = [
            row.removeprefix("#   ") for row in DOCKERFILE.read_text().splitlines() if row.startswith("#   ")
        ]

        assert len(told) == 3
        assert [command for command in told if command not in page] == []

    def test_its_health_needs_no_other_program(self):
        """The health check is Python's, as the image has no curl."""
        assert words("HEALTHCHECK")[:2] == ["python", "-c"]


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
class TestImage:
    def test_it_serves_and_is_healthy(self, image):
        """With a root that cannot be written, and as nobody, the image serves and says that it is healthy."""
        serve = as_docker_does([*words("ENTRYPOINT"), *words("CMD")])
        check = as_docker_does(words("HEALTHCHECK"))
        done = image(
            f"{check} 2>/dev/null && exit 3; {serve} & for _ in $(seq 100); do {check} 2>/dev/null && break;"
            f" sleep 0.1; done; {check}; kill $(cat /proc/$!/task/$!/children); wait $!"
        )

        assert (done.returncode, done.stdout) == (0, b""), done.stderr
        assert b"serving at http://0.0.0.0:8000/mcp" in done.stderr

    @pytest.mark.parametrize(("first", "code"), [(slice(0, -1), 0), (slice(0, 0), 1)], ids=["it", "another"])
    def test_what_children_leave_behind_is_waited_for(self, image, first, code):
        """
        A child of a prompt's child is gone once it has ended. It stays where Python is the first process.
        """
        done = image(as_docker_does([*words("ENTRYPOINT")[first], "python", "-c", ORPHAN]))

        assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")

    def test_nothing_of_it_can_be_written(self, image):
        """Neither its user nor root can write into the image; and the server's user is nobody."""
        done = image(as_docker_does(["sh", "-c", "id -u; touch /srv/x /tmp/x"]) + "|| touch $IMAGE/srv/x")

        assert (done.returncode, done.stdout.split()) == (1, [b"65534"])
        assert done.stderr.count(b"Read-only file system") == 3

    def test_it_serves_over_stdio(self, image):
        """The image serves a client on standard input and output, too, and logs nothing."""
        command = [*words("ENTRYPOINT"), "serve", "recipes"]
        asked = line(modern(1, "prompts/list")) + line(modern(2, "prompts/get", {"name": "code_review"}))
        done = image(as_docker_does(command), input=asked)
        replies = sorted(map(json.loads, done.stdout.splitlines()), key=lambda reply: reply["id"])

        assert (done.returncode, done.stderr) == (0, b"")
        assert [reply["id"] for reply in replies] == [1, 2]
        assert "code_review" in [prompt["name"] for prompt in replies[0]["result"]["prompts"]]

    def test_it_starts_like_the_bare_command(self, image, record_property):
        """
        Until the first answer it takes at most 1.5 times as long as the same command without an image: as
        root, in a folder that can be written. The two are started in turn.
        """
        command = [*words("ENTRYPOINT"), *words("CMD")]
        bare = [str(Path(sys.executable).with_name("promptkit")), *words("CMD")]
        contained = ["sh", "-c", f"exec {as_docker_does(command)}"]
        named = {"bare": ["sh", "-c", f"cd {ROOT} && exec {shlex.join(bare)}"], "image": contained}
        measure = shlex.join([sys.executable, str(START_TIMES), str(ROUNDS), json.dumps(named)])
        done = image(f"exec {measure}")
        assert done.returncode == 0, done.stderr
        times = {name: min(found) for name, found in json.loads(done.stdout).items()}
        ratio = times["image"] / times["bare"]
        record_property("figures", f"{times['image']:.3f} s, {ratio:.2f} times the bare command's")

        assert ratio <= 1.5
