// Does again what a person did before the scripts were here: on a slow machine or network a page is seen, and can be
// used, for seconds before they come.
//
// Fields keep what was typed, ticked or chosen, but its events have gone by with nobody to hear them. Here they are told
// once more. An island that comes later does so for its own fields.
const TYPED = "textarea, input:not([type=checkbox], [type=radio], [type=file], [type=range])";

function isChosen(select) {
  const options = [...select.options];
  if (select.multiple || options.some((each) => each.defaultSelected)) {
    return options.some((each) => each.selected !== each.defaultSelected);
  }
  return select.selectedIndex !== options.findIndex((each) => !each.disabled);
}

function isTouched(field) {
  if (field.localName === "select") return isChosen(field);
  if (field.type === "radio") return field.checked && !field.defaultChecked;
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.type === "file") return field.files.length > 0;
  if (field.type === "range") return field.defaultValue !== "" && Number(field.value) !== Number(field.defaultValue);
  return field.value !== field.defaultValue;
}

function tell(field) {
  field.dispatchEvent(new Event("input", { bubbles: true }));
  // Who still types has not finished: the browser tells of it when they leave the field.
  if (document.activeElement === field && field.matches(TYPED)) return;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

export function catchUp() {
  for (const field of document.querySelectorAll("input, select, textarea")) {
    if (isTouched(field) && !field.closest("[data-island]:not([data-mounted])")) tell(field);
  }
  for (const each of document.querySelectorAll("details[open]")) each.dispatchEvent(new Event("toggle"));
}
