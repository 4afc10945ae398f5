// The comment at a pull request. A job without rights leaves data; this script, which has rights, trusts none of it:
// it reads texts from JSON, and makes each one code.
"use strict";

const fs = require("node:fs");

const MARK = "<!-- promptkit diff -->";
const HEAD = `${MARK}\n\n## Text of prompts`;

// GitHub takes 65,536 characters at most.
const MOST = 60_000;
const MOST_OF_CASE = 8_000;
const MOST_OF_TITLE = 300;
const MOST_BYTES = 16 * 1024 * 1024;

/** A text without control characters, direction marks, tags and halves of surrogates. Joiners of emoji stay. */
function visible(text) {
  return text.replace(/\r\n?/g, "\n").replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, "\ufffd");
}

/** At most *most* characters of a text. */
function cut(text, most) {
  return text.length > most ? `${text.slice(0, most)}\n[... ${text.length - most} characters cut ...]` : text;
}

/** A title as one line of HTML, in which neither GitHub nor a browser finds anything but text. */
function title(text) {
  const line = visible(text.slice(0, MOST_OF_TITLE)).replace(/[\n\t]/g, " ");
  return `<code>${line.replace(/[^\p{L}\p{N} ]/gu, (sign) => `&#${sign.codePointAt(0)};`)}</code>`;
}

/** A block of code that nothing in it can end. */
function code(text) {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}diff\n${text}\n${fence}`;
}

/** A case: its title, which unfolds what differs. The blank lines separate HTML from Markdown. */
function part({ message, diff }) {
  const opening = `<details><summary>${title(message)}</summary>`;
  return diff.length === 0 ? `${opening}</details>` : `${opening}\n\n${code(visible(cut(diff.join("\n"), MOST_OF_CASE)))}\n\n</details>`;
}

function isChange(one) {
  return typeof one?.message === "string" && Array.isArray(one.diff) && one.diff.every((line) => typeof line === "string");
}

/** The comment of what a job has left; null if nothing differs. Throws an Error if that is not what `diff` prints. */
function rendered(left) {
  const changes = JSON.parse(left)?.changes;
  if (!Array.isArray(changes) || !changes.every(isChange)) {
    throw new Error("what the job has left is not what promptkit diff --text --json prints");
  }
  const parts = [];
  let room = MOST - HEAD.length;
  for (const one of changes) {
    const next = part(one);
    room -= next.length + 2;
    if (room < 0) break;
    parts.push(next);
  }
  const hidden = changes.length - parts.length;
  const more = hidden === 0 ? [] : [`${hidden} more changes are not shown: run \`promptkit diff --text\` to see all.`];
  return changes.length === 0 ? null : [HEAD, ...parts, ...more].join("\n\n");
}

/** The text of a regular file. A link, a pipe or a large file is refused. */
function read(file) {
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0));
  try {
    const found = fs.fstatSync(descriptor);
    if (!found.isFile() || found.size > MOST_BYTES) {
      throw new Error(`what the job has left is not a file of at most ${MOST_BYTES} bytes`);
    }
    return fs.readFileSync(descriptor, "utf8");
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Write the comment, edit the one that is there, or say in it that nothing differs any more. */
async function write({ github, context, core, file }) {
  const run = context.payload.workflow_run;
  // By what GitHub knows of the run: what it has left may name any pull request. A fork may be gone.
  const head = `${run.head_repository?.owner.login}:${run.head_branch}`;
  const pulls = await github.paginate(github.rest.pulls.list, { ...context.repo, state: "open", head });
  const pull = pulls.find((one) => one.head.sha === run.head_sha);
  if (run.event !== "pull_request" || pull === undefined) {
    core.notice("there is no open pull request of this commit: no comment is written");
    return;
  }
  let comment;
  try {
    comment = rendered(read(file));
  } catch (error) {
    // The message of a parser quotes the text, and the log of a job reads commands.
    const known = error instanceof SyntaxError ? "what the job has left is not JSON" : error.message;
    core.setFailed(known);
    return;
  }
  const comments = await github.paginate(github.rest.issues.listComments, { ...context.repo, issue_number: pull.number });
  const own = comments.find((one) => one.user?.type === "Bot" && one.body?.startsWith(MARK));
  const body = comment ?? (own && `${HEAD}\n\nThe same as before.`);
  if (own !== undefined) {
    await github.rest.issues.updateComment({ ...context.repo, comment_id: own.id, body });
  } else if (body !== undefined) {
    await github.rest.issues.createComment({ ...context.repo, issue_number: pull.number, body });
  }
}

module.exports = { rendered, write };
