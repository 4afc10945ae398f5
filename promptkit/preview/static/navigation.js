// Navigation: tabs, whose state is in the URL, the list of prompts, and the palette.

const by = (id) => document.getElementById(id);
const work = by("work");

// Tabs. htmx fetches the content of most of them; the conversation and the arguments are part of the page.

function openTab(tab) {
  const name = tab.dataset.tab;
  const panel = by("tab-panel");
  const isFarDown = work.getBoundingClientRect().top < 0;
  tab.classList.remove("changed");
  for (const one of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
    // A new request replaces the pending one, as hx-sync defines.
    if (one.getAttribute("aria-selected") === "true" && !isFetched(tab)) htmx.trigger(one, "htmx:abort");
    one.setAttribute("aria-selected", String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
  }
  if (name !== work.dataset.tab) panel.replaceChildren(); // it would follow the form, and ask in the name of the former
  if (isFetched(tab)) panel.setAttribute("aria-labelledby", tab.id);
  work.dataset.tab = name;
  tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (isFarDown) work.scrollIntoView();
  if (isFetched(tab) && document.body.classList.contains("lost")) panel.textContent = by("news").textContent;
  keepTab();
}

const isFetched = (tab) => tab.getAttribute("aria-controls") === "tab-panel";

function keepTab() {
  const place = new URL(location.href);
  if (isFetched(by(`tab-${work.dataset.tab}`))) place.searchParams.set("open-tab", work.dataset.tab);
  else place.searchParams.delete("open-tab");
  history.replaceState(history.state, "", place);
}

// A rendering sets a URL without the tab: add it again.
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (work && ctx.sourceElement.id === "arguments") keepTab();
});

// Arguments have no tab while they are a separate column.
matchMedia("(min-width: 68.01rem)").addEventListener("change", ({ matches }) => {
  if (matches && work?.dataset.tab === "arguments") by("tab-conversation").click();
});

const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

function moveAlong(event) {
  const list = event.target.closest?.("[role=tablist]");
  if (!list || !(event.key in steps)) return;
  const tabs = [...list.querySelectorAll("[role=tab]")].filter((tab) => tab.offsetParent);
  const at = tabs.indexOf(event.target) + steps[event.key];
  const next = tabs[Number.isFinite(at) ? (at + tabs.length) % tabs.length : at < 0 ? 0 : tabs.length - 1];
  event.preventDefault();
  next.focus();
  next.click();
}

// Keep the page's prompt visible in the list of prompts, also after the list is replaced.

function showCurrent() {
  const current = document.querySelector(".side [aria-current]")?.closest("li");
  if (!current || document.querySelector(".side [name=q]").value) return;
  const side = current.closest(".side");
  const [inner, outer] = [current.getBoundingClientRect(), side.getBoundingClientRect()];
  if (inner.top >= outer.top + 60 && inner.bottom <= outer.bottom) return;
  side.scrollTop += inner.top - outer.top - side.clientHeight / 2;
}

showCurrent();
document.addEventListener("htmx:after:swap", ({ target }) => {
  if (target.closest?.(".side")) showCurrent();
});

function search(words) {
  const field = document.querySelector("#q");
  field.value = field.value === words ? "" : words;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// The palette: Ctrl+K opens it, arrow keys move the selection, and Escape closes it, like all dialogs.

const palette = by("palette");

function openPalette() {
  if (palette.open) return;
  isDecided = false;
  palette.showModal();
  by("go").value = "";
  by("go").dispatchEvent(new Event("input", { bubbles: true }));
}

// Enter opens the first result, after the search for the whole input has finished.
let isDecided = false;

function goToFirst() {
  isDecided = by("places").firstElementChild?.dataset.typed !== by("go").value;
  if (!isDecided) placesShown()[0]?.click();
}

const placesShown = () => [...palette.querySelectorAll("#places :is(a, button)")].filter((place) => place.offsetParent);

document.addEventListener("htmx:after:swap", () => {
  if (isDecided && palette?.open) goToFirst();
});

function moveInPalette(event) {
  const places = placesShown();
  const at = places.indexOf(document.activeElement);
  if (event.key === "ArrowDown") places[Math.min(at + 1, places.length - 1)]?.focus();
  else if (event.key === "ArrowUp") (places[at - 1] ?? by("go")).focus();
  else if (event.key === "Enter" && document.activeElement === by("go")) goToFirst();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", (event) => {
  if (event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && palette) {
    event.preventDefault();
    openPalette();
  } else if (palette?.open) moveInPalette(event);
  else if (event.key === "ArrowDown" && event.target.id === "q") {
    event.preventDefault();
    document.querySelector("#found a")?.focus();
  } else if (event.key === "/" && !event.target.closest("input, select, textarea") && by("q")) {
    event.preventDefault();
    by("q").focus();
  } else moveAlong(event);
});

// After a save, mark the tab Changes if the prompt's rendering has changed.

let before = null;
const said = () => by("said")?.textContent.trim();

document.body.addEventListener("reload", () => (before = said()));
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (before === null || ctx.sourceElement.id !== "arguments") return;
  if (before !== said() && work?.dataset.tab !== "changes") by("tab-changes")?.classList.add("changed");
  before = null;
});

// A case opens in the current tab.
document.addEventListener("click", (event) => {
  const link = event.target.closest("#cases a");
  if (link && isFetched(by(`tab-${work.dataset.tab}`))) link.search += `&open-tab=${work.dataset.tab}`;
}, { capture: true });

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.getAttribute("role") === "tab") openTab(button);
  else if (button.dataset.tab) {
    palette.close();
    by(`tab-${button.dataset.tab}`).click();
  } else if ("palette" in button.dataset) openPalette();
  else if (button.dataset.search) search(button.dataset.search);
});
