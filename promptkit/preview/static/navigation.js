// Navigation: tabs, whose state is in the URL, and the list of prompts.

const by = (id) => document.getElementById(id);
const workspace = by("workspace");

// Tabs. htmx fetches the content of most of them; the conversation and the arguments are part of the page.

function openTab(tab) {
  const name = tab.dataset.tab;
  const panel = by("tab-panel");
  const isFarDown = workspace.getBoundingClientRect().top < 0;
  tab.classList.remove("changed");
  for (const other of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
    // A new request replaces the pending one, as hx-sync defines.
    if (other.getAttribute("aria-selected") === "true" && !isFetched(tab)) htmx.trigger(other, "htmx:abort");
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  if (name !== workspace.dataset.tab) panel.replaceChildren(); // otherwise the old content would still request updates
  if (isFetched(tab)) panel.setAttribute("aria-labelledby", tab.id);
  workspace.dataset.tab = name;
  tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (isFarDown) workspace.scrollIntoView();
  if (isFetched(tab) && document.body.classList.contains("disconnected")) panel.textContent = by("announcement").textContent;
  saveTabInUrl();
}

const isFetched = (tab) => tab.getAttribute("aria-controls") === "tab-panel";

function saveTabInUrl() {
  const url = new URL(location.href);
  if (isFetched(by(`tab-${workspace.dataset.tab}`))) url.searchParams.set("open-tab", workspace.dataset.tab);
  else url.searchParams.delete("open-tab");
  history.replaceState(history.state, "", url);
}

// A rendering sets a URL without the tab: add the tab again.
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (workspace && ctx.sourceElement.id === "arguments") saveTabInUrl();
});

// Arguments have no tab while they are a separate column.
matchMedia("(min-width: 68.01rem)").addEventListener("change", ({ matches }) => {
  if (matches && workspace?.dataset.tab === "arguments") by("tab-conversation").click();
});

const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

function moveBetweenTabs(event) {
  const list = event.target.closest?.("[role=tablist]");
  if (!list || !(event.key in steps)) return;
  const tabs = [...list.querySelectorAll("[role=tab]")].filter((tab) => tab.offsetParent);
  const index = tabs.indexOf(event.target) + steps[event.key];
  const next = tabs[Number.isFinite(index) ? (index + tabs.length) % tabs.length : index < 0 ? 0 : tabs.length - 1];
  event.preventDefault();
  next.focus();
  next.click();
}

// Keep the page's prompt visible in the list of prompts, even after the list is replaced.

function scrollToCurrent() {
  const current = document.querySelector(".sidebar [aria-current]")?.closest("li");
  if (!current || document.querySelector(".sidebar [name=q]").value) return;
  const sidebar = current.closest(".sidebar");
  const [inner, outer] = [current.getBoundingClientRect(), sidebar.getBoundingClientRect()];
  if (inner.top >= outer.top + 60 && inner.bottom <= outer.bottom) return;
  sidebar.scrollTop += inner.top - outer.top - sidebar.clientHeight / 2;
}

scrollToCurrent();
document.addEventListener("htmx:after:swap", ({ target }) => {
  if (target.closest?.(".sidebar")) scrollToCurrent();
});

function toggleSearch(query) {
  const field = document.querySelector("#q");
  field.value = field.value === query ? "" : query;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" && event.target.id === "q") {
    event.preventDefault();
    document.querySelector("#results a")?.focus();
  } else if (event.key === "/" && !event.target.closest("input, select, textarea") && by("q")) {
    event.preventDefault();
    by("q").focus();
  } else moveBetweenTabs(event);
});

// After a save, mark the tab Changes if the prompt's rendering has changed.

let previousText = null;
const renderedText = () => by("rendering")?.textContent.trim();

document.body.addEventListener("reload", () => (previousText = renderedText()));
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (previousText === null || ctx.sourceElement.id !== "arguments") return;
  if (previousText !== renderedText() && workspace?.dataset.tab !== "changes") by("tab-changes")?.classList.add("changed");
  previousText = null;
});

// A case opens in the current tab.
document.addEventListener("click", (event) => {
  const link = event.target.closest("#cases a");
  if (link && isFetched(by(`tab-${workspace.dataset.tab}`))) link.search += `&open-tab=${workspace.dataset.tab}`;
}, { capture: true });

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.getAttribute("role") === "tab") openTab(button);
  else if (button.dataset.search) toggleSearch(button.dataset.search);
});
