// Behavior of all pages: updates after reloads, text as Markdown or raw, and copying.
// htmx handles requests and swaps, configured by attributes in the templates.

const announcement = document.getElementById("announcement");
// Elements that stick below the page header need its height.
const header = document.querySelector(".page-header");
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--header-height", `${header.offsetHeight}px`);
}).observe(header);

function announce(text) {
  if (announcement.textContent !== text) announcement.textContent = text; // do not announce the same text again
  announcement.classList.toggle("error", document.body.classList.contains("disconnected"));
  clearTimeout(announce.timer);
  if (!document.body.classList.contains("disconnected")) announce.timer = setTimeout(() => (announcement.textContent = ""), 8000);
}

// The server notifies each page of reloads. Hidden pages close their connection, because
// browsers limit the connections to one server.

function connect() {
  if (document.hidden || connect.events) return;
  const events = (connect.events = new EventSource(`/events?version=${document.body.dataset.version}`));
  events.addEventListener("reload", (event) => {
    const change = JSON.parse(event.data);
    document.body.dataset.version = change.version;
    if (document.body.classList.contains("error")) return location.reload();
    if (change.message) announce(change.message);
    htmx.trigger(document.body, "reload");
  });
  events.addEventListener("open", () => {
    if (!document.body.classList.contains("disconnected")) return;
    document.body.classList.remove("disconnected");
    announce("Reconnected.");
    if (state) htmx.trigger(document.body, "reload"); // renders again, and so updates the state
  });
  events.addEventListener("error", () => {
    document.body.classList.add("disconnected"); // the content may be outdated
    if (state) state.textContent = "Not connected: this may be outdated";
    const isRejected = events.readyState === EventSource.CLOSED;
    announce(isRejected ? "promptkit dev was restarted: open the address that it printed." : "promptkit dev is not responding.");
  });
}

// While the server is unreachable, following a link would lose the visible content.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || !document.body.classList.contains("disconnected")) return;
  event.preventDefault();
  announce("promptkit dev is not responding: restart it.");
}, { capture: true });

function disconnect() {
  connect.events?.close();
  connect.events = null;
}

if (document.body.dataset.version !== undefined) {
  connect();
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
}

// While a slow prompt runs, "Rendering..." replaces outdated information: the state, the errors of the edited
// field, and the content of the open tab. Fast responses change nothing, to avoid flicker.

const state = document.getElementById("state");
const panel = document.getElementById("tab-panel");
let edited = null;

for (const kind of ["input", "change"])
  document.addEventListener(kind, (event) => (edited = event.target.closest("#arguments .field") ?? edited));

const SLOW_AFTER_MS = 300;
const RENDERING = "Rendering...";

const formStatus = {
  start() {
    state.textContent = RENDERING;
    edited?.querySelector(".field-errors").replaceChildren();
  },
  end() {
    if (state.textContent === RENDERING) state.textContent = "Not rendered";
  },
};
const tabStatus = {
  start: () => panel.setAttribute("aria-busy", "true"),
  end: () => panel.removeAttribute("aria-busy"),
};

function findStatus({ sourceElement, target }) {
  if (sourceElement.id === "arguments") return formStatus;
  return panel && target === panel ? tabStatus : null;
}

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const status = findStatus(ctx);
  if (!status) return;
  status.request = ctx;
  if (status.isSlow) status.start();
  status.timer ??= setTimeout(() => {
    status.isSlow = true;
    status.start();
  }, SLOW_AFTER_MS);
});

document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  const status = findStatus(ctx);
  if (status?.request !== ctx) return; // a newer request has replaced it
  clearTimeout(status.timer);
  status.timer = null;
  status.isSlow = false;
  status.end();
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

addEventListener("load", () => setTimeout(sendEdits)); // htmx, which also starts with a timer, listens by then

// The display mode of text is the same on all pages.

function showTextAs(mode) {
  document.body.dataset.show = mode;
  for (const button of document.querySelectorAll("button[data-show]"))
    button.setAttribute("aria-pressed", String(button.dataset.show === mode));
}

const textMode = () => sessionStorage.getItem("show") ?? "formatted";
showTextAs(textMode());
document.addEventListener("htmx:after:swap", () => showTextAs(textMode()));

// The text that a button copies: the displayed text, or its original if it is truncated or escaped.

export async function fetchText(button, element) {
  if (!button.dataset.fullText) return element.textContent;
  const response = await fetch(button.dataset.fullText);
  if (!response.ok) throw new Error(await response.text());
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await response.arrayBuffer());
}

async function copyTurn(button) {
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(await fetchText(button, source.querySelector(".raw") ?? source));
    announce("Copied.");
  } catch (error) {
    announce(`Not copied: ${error.message}`);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.show) {
    sessionStorage.setItem("show", button.dataset.show);
    showTextAs(button.dataset.show);
  } else if (button?.dataset.copy) copyTurn(button);
});
