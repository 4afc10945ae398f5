// The comment at a pull request: made anew of what a job without rights has left, and kept as one.
"use strict";

const fs = require("node:fs");

const MARK = "<!-- promptkit diff -->";
const HEAD = `${MARK}\n\n## What prompts say`;

// GitHub takes 65,536 characters at most.
const MOST = 60_000;

// A case: its title, and a block of code with what differs; or its title alone.
const PART = /<details><summary>(?<folded>[^\n]*)<\/summary>\n\n(?<fence>`{3,})diff\n(?<block>[\s\S]*?)\n\k<fence>\n\n<\/details>|^- (?<plain><code>[^\n]*)$/gm;

const NAMED = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" };
const ESCAPES = { "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "&": "&amp;" };

/** A title of any origin as code, in which nothing is HTML. */
function title(html) {
  const text = html.replace(/<[^>]*>/g, "").replace(/&(?:lt|gt|quot|#x27|amp);/g, (name) => NAMED[name]);
  return `<code>${text.slice(0, 300).replace(/[<>"'&]/g, (sign) => ESCAPES[sign])}</code>`;
}

/** A block of code that nothing in it can end. */
function code(text) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}diff\n${text}\n${fence}`;
}

/** The comment of what a job has left, without anything but titles and blocks of code; null if there is none. */
function sanitized(left) {
  const parts = [];
  let room = MOST - HEAD.length;
  let hidden = 0;
  const text = left.slice(0, 200_000).replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  for (const { groups } of text.matchAll(PART)) {
    const part = groups.plain === undefined
      ? `<details><summary>${title(groups.folded)}</summary>\n\n${code(groups.block)}\n\n</details>`
      : `- ${title(groups.plain)}`;
    if (part.length + 2 > room) {
      hidden += 1;
    } else {
      parts.push(part);
      room -= part.length + 2;
    }
  }
  if (parts.length === 0 && hidden === 0) return null;
  const more = hidden === 0 ? [] : [`${hidden} more are not shown.`];
  return [HEAD, ...parts, ...more].join("\n\n");
}

/** Write the comment, edit the one that is there, or say in it that nothing differs any more. */
async function write({ github, context, core, file }) {
  const run = context.payload.workflow_run;
  // By what GitHub knows of the run: what it has left may name any pull request.
  const head = `${run.head_repository.owner.login}:${run.head_branch}`;
  const pulls = await github.paginate(github.rest.pulls.list, { ...context.repo, state: "open", head });
  const pull = pulls.find((one) => one.head.sha === run.head_sha);
  if (run.event !== "pull_request" || pull === undefined) {
    core.notice("there is no open pull request of this commit: no comment is written");
    return;
  }
  const comments = await github.paginate(github.rest.issues.listComments, { ...context.repo, issue_number: pull.number });
  const own = comments.find((one) => one.user.type === "Bot" && one.body.startsWith(MARK));
  const body = sanitized(fs.readFileSync(file, "utf8")) ?? (own && `${HEAD}\n\nThe same as before.`);
  if (own !== undefined) {
    await github.rest.issues.updateComment({ ...context.repo, comment_id: own.id, body });
  } else if (body !== undefined) {
    await github.rest.issues.createComment({ ...context.repo, issue_number: pull.number, body });
  }
}

module.exports = { sanitized, write };
