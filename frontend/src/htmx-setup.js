// Configures htmx for our rules: no eval, no inline styles, errors shown where people look.
import htmx from "htmx.org";

htmx.config.includeIndicatorCSS = false;
htmx.config.morphIgnore = ["data-htmx-powered", "data-mounted", "open"]; // what a person opened stays open
window.htmx = htmx;

// A late answer does not replace what was typed while it was under way.
htmx.registerExtension("typed-stays", {
  htmx_before_morph_attr(field, { attrName }) {
    const isTyped = field.localName === "input" && field.type !== "hidden" && field.value !== field.defaultValue;
    return !(attrName === "value" && isTyped && field.closest("[data-typed-stays]"));
  },
});

// A part of a page that could not be had must say so; the page itself stays as it was.
document.addEventListener("htmx:error", (event) => {
  const told = event.detail?.error?.message ?? "";
  if (/abort/i.test(told) || event.detail?.ctx?.status === "aborted") return;
  document.dispatchEvent(
    new CustomEvent("ziggurat:say", { detail: { level: "error", text: "The studio did not answer. Try again." } }),
  );
});

export default htmx;
