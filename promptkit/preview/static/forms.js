// Form behavior beyond htmx: error states of controls, file drops, examples, and copies.
import { fetchText } from "./preview.js";

{
  const by = (id) => document.getElementById(id);

  // A control is marked as invalid while it has errors, once it was touched or initially had a value: htmx only
  // updates the error text.
  const touched = new Set();

  function markControls() {
    for (const field of document.querySelectorAll("#arguments .field")) {
      if (field.classList.contains("touched")) touched.add(field.id);
      else if (touched.has(field.id)) field.classList.add("touched");
      const errors = field.querySelector(".field-errors");
      const control = field.querySelector("[aria-errormessage]");
      const isInvalid = errors.childElementCount > 0 && field.classList.contains("touched");
      if (control && isInvalid !== control.hasAttribute("aria-invalid")) {
        if (isInvalid) control.setAttribute("aria-invalid", "true");
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
    const observed = { childList: true, subtree: true, attributeFilter: ["class"] };
    new MutationObserver(markControls).observe(form, observed);
    for (const name of ["change", "focusout"]) form.addEventListener(name, touch);
    markControls();
  }

  // After an upload has replaced a control, focus the new control if the old one had the focus.
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

  const dispatchChange = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));

  function fillExample(button) {
    const key = button.dataset.for;
    const control = by(`argument-${key}`);
    if (!control) return;
    const { example } = button.dataset;
    if (control.matches("[role=group]")) {
      const values = example.split(",").map((value) => value.trim());
      const boxes = [...control.querySelectorAll("[type=checkbox]")];
      for (const box of boxes) box.checked = values.includes(box.value);
      return dispatchChange(boxes[0]);
    }
    const choice = control.querySelector(`[data-represents="${CSS.escape(example)}"]`);
    if (choice) choice[choice.type === "radio" ? "checked" : "selected"] = true;
    else control.value = example;
    dispatchChange(control.matches("[role=radiogroup]") ? (choice ?? control) : control);
  }

  function removeUpload(button) {
    const field = button.closest(".field");
    button.closest(".stored").remove();
    field.querySelectorAll("input[type=hidden]").forEach((input) => input.remove());
    const chooser = field.querySelector("input[type=file]");
    (chooser.closest("details")?.querySelector("summary") ?? chooser).focus();
    dispatchChange(chooser);
  }

  async function copyBlock(button) {
    const status = button.closest(".block").querySelector("[role=status]");
    const source = by(button.dataset.copyText);
    try {
      await navigator.clipboard.writeText(await fetchText(button, source));
      status.textContent = "Copied";
    } catch (error) {
      if (button.dataset.fullText) return (status.textContent = `Not copied: ${error.message}`);
      getSelection().selectAllChildren(source);
      status.textContent = "Selected: use the keyboard to copy";
    }
  }

  const actions = { example: fillExample, remove: removeUpload, copyText: copyBlock };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const [name, action] of Object.entries(actions)) if (name in button.dataset) action(button);
  });

  // Do not send files that are too large. The server shows the error at the field until another file is chosen.
  function rejectOversized({ target: chooser }) {
    if (chooser.type !== "file" || !chooser.files.length) return;
    const name = chooser.name.replace(/file$/, "oversized");
    chooser.parentElement.querySelector(`input[name="${CSS.escape(name)}"]`)?.remove();
    const size = [...chooser.files].reduce((sum, file) => sum + file.size, 0);
    if (size <= Number(form.dataset.maxUploadSize)) return;
    const names = [...chooser.files].map((file) => file.name).join(", ");
    const oversized = Object.assign(document.createElement("input"), { type: "hidden", name, value: `${size} ${names}` });
    chooser.after(oversized);
    chooser.value = "";
  }
  for (const name of ["input", "change"]) document.addEventListener(name, rejectOversized, { capture: true });

  // Dropped files are handled like chosen files.
  const findDropTarget = (event) => event.dataTransfer?.types.includes("Files") && event.target.closest?.("[data-drop]");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      const field = findDropTarget(event);
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
    const field = findDropTarget(event);
    if (!field) return;
    event.preventDefault();
    field.classList.remove("dropping");
    const chooser = by(field.dataset.drop);
    const files = new DataTransfer();
    for (const file of chooser.multiple ? event.dataTransfer.files : [...event.dataTransfer.files].slice(0, 1)) {
      files.items.add(file);
    }
    chooser.files = files.files;
    dispatchChange(chooser);
  });
}
