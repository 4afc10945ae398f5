// Behavior of all pages: they follow reloads, show text as Markdown or raw, and copy it.
// htmx handles requests and swaps, configured by attributes in the templates.

const news = document.getElementById("news");
// Elements that stick below the page header need its height.
const head = document.querySelector(".top");
new ResizeObserver(() => document.documentElement.style.setProperty("--top", `${head.offsetHeight}px`)).observe(head);

function tell(text) {
  if (news.textContent !== text) news.textContent = text; // else it would be announced again
  news.classList.toggle("error", document.body.classList.contains("lost"));
  clearTimeout(tell.timer);
  if (!document.body.classList.contains("lost")) tell.timer = setTimeout(() => (news.textContent = ""), 8000);
}

// The server notifies each page of reloads. Hidden pages close their connection, because
// browsers limit the connections to one server.

function follow() {
  if (document.hidden || follow.events) return;
  const events = (follow.events = new EventSource(`/events?version=${document.body.dataset.version}`));
  events.addEventListener("reload", (event) => {
    const change = JSON.parse(event.data);
    document.body.dataset.version = change.version;
    if (document.body.classList.contains("error")) return location.reload();
    if (change.said) tell(change.said);
    htmx.trigger(document.body, "reload");
  });
  events.addEventListener("open", () => {
    if (!document.body.classList.contains("lost")) return;
    document.body.classList.remove("lost");
    tell("Connected again.");
  });
  events.addEventListener("error", () => {
    document.body.classList.add("lost"); // what is shown may not be true any more
    const ended = events.readyState === EventSource.CLOSED;
    tell(ended ? "promptkit dev was started anew: open the address that it has printed." : "promptkit dev does not answer.");
  });
}

// While the server is unreachable, following a link would lose the visible content.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || !document.body.classList.contains("lost")) return;
  event.preventDefault();
  tell("promptkit dev does not answer: start it again.");
}, { capture: true });

function unfollow() {
  follow.events?.close();
  follow.events = null;
}

if (document.body.dataset.version !== undefined) {
  follow();
  document.addEventListener("visibilitychange", () => (document.hidden ? unfollow() : follow()));
  addEventListener("pagehide", unfollow);
  addEventListener("pageshow", follow);
}

// While a slow prompt runs, the page shows that instead of outdated information: the state, the errors of the
// edited field, and the open tab. Fast responses change nothing, to avoid flicker.

const state = document.getElementById("state");
const panel = document.getElementById("tab-panel");
let edited = null;

for (const kind of ["input", "change"])
  document.addEventListener(kind, (event) => (edited = event.target.closest("#arguments .field") ?? edited));

const LATE_MS = 300;
const RENDERING = "Rendering...";

const ofForm = {
  begin() {
    state.textContent = RENDERING;
    edited?.querySelector(".faults-of-field").replaceChildren();
  },
  end() {
    if (state.textContent === RENDERING) state.textContent = "Not rendered";
  },
};
const ofTab = {
  begin: () => panel.setAttribute("aria-busy", "true"),
  end: () => panel.removeAttribute("aria-busy"),
};

function waiting({ sourceElement, target }) {
  if (sourceElement.id === "arguments") return ofForm;
  return panel && target === panel ? ofTab : null;
}

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const part = waiting(ctx);
  if (!part) return;
  part.request = ctx;
  if (part.isLate) part.begin();
  part.timer ??= setTimeout(() => {
    part.isLate = true;
    part.begin();
  }, LATE_MS);
});

document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  const part = waiting(ctx);
  if (part?.request !== ctx) return; // a newer one has taken its place
  clearTimeout(part.timer);
  part.timer = null;
  part.isLate = false;
  part.end();
});

// Users might enter values before these scripts have loaded: submit them now.

function isEdited(control) {
  if (control.type === "radio" || control.type === "checkbox") return control.checked !== control.defaultChecked;
  if (!control.options) return control.value !== control.defaultValue;
  const first = [...control.options].findIndex((option) => option.defaultSelected);
  return control.selectedIndex !== Math.max(first, 0);
}

function sendEdits() {
  for (const control of document.querySelectorAll("form :is(input, select, textarea)"))
    if (isEdited(control)) control.dispatchEvent(new Event("input", { bubbles: true }));
}

addEventListener("load", () => setTimeout(sendEdits)); // htmx listens by then: it began with a timer, too

// The display mode of text is the same on all pages.

function showAs(form) {
  document.body.dataset.show = form;
  for (const button of document.querySelectorAll("button[data-show]"))
    button.setAttribute("aria-pressed", String(button.dataset.show === form));
}

const shown = () => sessionStorage.getItem("show") ?? "formatted";
showAs(shown());
document.addEventListener("htmx:after:swap", () => showAs(shown()));

// The text that a button copies: the displayed text, or its original if it is truncated or escaped.

export async function textOf(button, shown) {
  if (!button.dataset.whole) return shown.textContent;
  const response = await fetch(button.dataset.whole);
  if (!response.ok) throw new Error(await response.text());
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await response.arrayBuffer());
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(await textOf(button, source.querySelector(".raw") ?? source));
    tell("Copied.");
  } catch (error) {
    tell(`Not copied: ${error.message}`);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.show) {
    sessionStorage.setItem("show", button.dataset.show);
    showAs(button.dataset.show);
  } else if (button?.dataset.copy) copy(button);
});
