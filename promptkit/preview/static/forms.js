// Form behavior beyond htmx: error states of controls, file drops, examples, and copies.
import { textOf } from "./preview.js";

{
  const by = (id) => document.getElementById(id);

  // A control is marked as invalid while it has errors, once it was touched or initially had a value: htmx only
  // updates the error text.
  const touched = new Set();

  function markControls() {
    for (const field of document.querySelectorAll("#arguments .field")) {
      if (field.classList.contains("touched")) touched.add(field.id);
      else if (touched.has(field.id)) field.classList.add("touched");
      const faults = field.querySelector(".faults-of-field");
      const control = field.querySelector("[aria-errormessage]");
      const isWrong = faults.childElementCount > 0 && field.classList.contains("touched");
      if (control && isWrong !== control.hasAttribute("aria-invalid")) {
        if (isWrong) control.setAttribute("aria-invalid", "true");
        else control.removeAttribute("aria-invalid");
      }
    }
  }

  function touch({ target }) {
    const field = target.closest?.("#arguments .field");
    if (!field) return;
    touched.add(field.id);
    markControls();
  }

  const form = by("arguments");
  if (form) {
    const seen = { childList: true, subtree: true, attributeFilter: ["class"] };
    new MutationObserver(markControls).observe(form, seen);
    for (const name of ["change", "focusout"]) form.addEventListener(name, touch);
    markControls();
  }

  // After an upload replaced a control, focus the new one if the old one had the focus.
  let focused = null;
  document.addEventListener("focusin", (event) => (focused = event.target.id));
  document.addEventListener("focusout", (event) => queueMicrotask(() => {
    if (event.target.isConnected && document.activeElement === document.body) focused = null;
  }));
  document.addEventListener("htmx:after:swap", (event) => {
    // The form now contains the text of the files: do not send them again.
    if (event.target === form) for (const chooser of form.querySelectorAll("input[type=file]")) chooser.value = "";
    if (document.activeElement === document.body && focused) by(focused)?.focus();
  });

  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));

  function fill(button) {
    const key = button.dataset.for;
    const control = by(`argument-${key}`);
    if (!control) return;
    const { example } = button.dataset;
    const choice = control.querySelector(`[data-means="${CSS.escape(example)}"]`);
    if (choice) choice[choice.type === "radio" ? "checked" : "selected"] = true;
    else if (control.type === "checkbox") control.checked = example === control.dataset.means;
    else control.value = example;
    changed(control.matches("[role=radiogroup]") ? (choice ?? control) : control);
  }

  function remove(button) {
    const field = button.closest(".field");
    button.closest(".kept").remove();
    field.querySelectorAll("input[type=hidden]").forEach((input) => input.remove());
    const chooser = field.querySelector("input[type=file]");
    (chooser.closest("details")?.querySelector("summary") ?? chooser).focus();
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

  // Do not send files that are too large. The server shows the error at the field until another file is chosen.
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

  // Dropped files are handled like chosen files.
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
}
