// What forms and tabs need beyond htmx: faults at controls, files by drop, examples, copies, and arrow keys.
import { textOf } from "./preview.js";

{
  const by = (id) => document.getElementById(id);

  // A control is invalid while something is wrong with it: htmx leaves controls alone, and writes what is wrong.
  function markControls() {
    for (const faults of document.querySelectorAll(".faults-of-field")) {
      const control = document.querySelector(`[aria-errormessage="${CSS.escape(faults.id)}"]`);
      if (!control) continue;
      if (faults.childElementCount) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  const form = by("arguments");
  if (form) new MutationObserver(markControls).observe(form, { childList: true, subtree: true });

  // A control that was written anew, after an upload, is focused as the old one was. One that people have left is not.
  let focused = null;
  document.addEventListener("focusin", (event) => (focused = event.target.id));
  document.addEventListener("focusout", (event) => queueMicrotask(() => {
    if (event.target.isConnected && document.activeElement === document.body) focused = null;
  }));
  document.addEventListener("htmx:after:swap", (event) => {
    // The form holds by now what was read from files: they are sent once.
    if (event.target === form) for (const chooser of form.querySelectorAll("input[type=file]")) chooser.value = "";
    if (document.activeElement === document.body && focused) by(focused)?.focus();
  });

  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));

  function fill(button) {
    const key = button.dataset.for;
    const control = by(`argument-${key}`);
    if (!control) return;
    const radio = control.querySelector(`input[value="${CSS.escape(button.dataset.example)}"]`);
    if (radio) radio.checked = true;
    else control.value = button.dataset.example;
    changed(radio ?? control);
  }

  function remove(button) {
    const field = button.closest(".field");
    button.closest(".kept").remove();
    field.querySelectorAll("input[type=hidden]").forEach((input) => input.remove());
    const chooser = field.querySelector("input[type=file]");
    chooser.focus();
    changed(chooser);
  }

  async function copy(button) {
    const said = button.closest(".block").querySelector("[role=status]");
    const shown = by(button.dataset.copyText);
    try {
      await navigator.clipboard.writeText(await textOf(button, shown));
      said.textContent = "Copied";
    } catch (error) {
      if (button.dataset.whole) return (said.textContent = `Not copied: ${error.message}`);
      getSelection().selectAllChildren(shown);
      said.textContent = "Selected: copy it with the keyboard";
    }
  }

  const actions = { example: fill, remove, copyText: copy };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const [name, act] of Object.entries(actions)) if (name in button.dataset) act(button);
  });

  // A file that is too large is not sent. The server says at the field that it is, until there is another.
  function withhold({ target: chooser }) {
    if (chooser.type !== "file" || !chooser.files.length) return;
    const name = chooser.name.replace(/file$/, "oversized");
    chooser.parentElement.querySelector(`input[name="${CSS.escape(name)}"]`)?.remove();
    const size = [...chooser.files].reduce((sum, file) => sum + file.size, 0);
    if (size <= Number(form.dataset.maxUploadSize)) return;
    const names = [...chooser.files].map((file) => file.name).join(", ");
    const told = Object.assign(document.createElement("input"), { type: "hidden", name, value: `${size} ${names}` });
    chooser.after(told);
    chooser.value = "";
  }
  for (const name of ["input", "change"]) document.addEventListener(name, withhold, { capture: true });

  // Files are dropped on a field as if they were chosen.
  const target = (event) => event.dataTransfer?.types.includes("Files") && event.target.closest?.("[data-drop]");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      const field = target(event);
      if (!field) return;
      event.preventDefault();
      field.classList.add("dropping");
    });
  }
  document.addEventListener("dragleave", (event) => {
    const field = event.target.closest?.("[data-drop]");
    if (field && !field.contains(event.relatedTarget)) field.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    const field = target(event);
    if (!field) return;
    event.preventDefault();
    field.classList.remove("dropping");
    const chooser = by(field.dataset.drop);
    const files = new DataTransfer();
    for (const file of chooser.multiple ? event.dataTransfer.files : [...event.dataTransfer.files].slice(0, 1)) {
      files.items.add(file);
    }
    chooser.files = files.files;
    changed(chooser);
  });

  // Arrow keys move between tabs, as in every list of tabs.
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    const list = event.target.closest?.("[role=tablist]");
    if (!list || !(event.key in steps)) return;
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const at = tabs.indexOf(event.target) + steps[event.key];
    const next = tabs[Number.isFinite(at) ? (at + tabs.length) % tabs.length : at < 0 ? 0 : tabs.length - 1];
    event.preventDefault();
    next.focus();
    next.click();
  });
  document.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (!tab) return;
    for (const one of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
      one.setAttribute("aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
    }
    by(tab.getAttribute("aria-controls"))?.setAttribute("aria-labelledby", tab.id);
  });
}
