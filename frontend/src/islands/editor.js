// The editor of a network's code, over a textarea that stays what the form sends.
//
// It lives in a shadow root: there CodeMirror's styles are adopted sheets, which the policy of the pages allows.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, foldGutter, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { NAMES } from "./editor/names.js";

const theme = EditorView.theme({
  "&": { border: "1px solid var(--line-strong)", borderRadius: "6px", background: "var(--surface)", color: "var(--ink)", fontSize: "0.88rem" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", maxHeight: "34rem", minHeight: "16rem", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { background: "var(--surface-raised)", color: "var(--ink-soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in srgb, var(--accent-soft) 45%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--focus) 28%, transparent)" },
  ".cm-panels, .cm-tooltip": { background: "var(--surface-raised)", color: "var(--ink)", borderColor: "var(--line-strong)" },
  ".cm-panels input, .cm-panels button, .cm-panels label": { font: "inherit", color: "var(--ink)", background: "var(--surface)", borderColor: "var(--line-strong)" },
  ".cm-button": { backgroundImage: "none" },
  ".cm-textfield": { border: "1px solid var(--line-strong)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.85", fontStyle: "normal" },
  ".cm-diagnostic": { fontFamily: "var(--sans)" },
  ".cm-searchMatch": { background: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  // The marks of their own are images in the text of a style, which the policy of the pages forbids.
  ".cm-lintRange-error, .cm-lintRange-active": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lint-marker-error": { content: "normal" },
  ".cm-lint-marker-error::before": { content: '"✕"', color: "var(--bad)", fontWeight: "700", lineHeight: "1.4" },
  ".cm-lint-marker": { width: "1em", height: "1.4em" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword], color: "var(--series-4)" },
  { tag: [tags.string, tags.docString], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--info)" },
  { tag: tags.comment, color: "var(--ink-soft)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--accent)", fontWeight: "600" },
  { tag: tags.meta, color: "var(--warn)" },
]);

function complete(context) {
  const found = context.matchBefore(/[A-Za-z_][\w.]*/);
  if (!found && !context.explicit) return null;
  const text = found?.text ?? "";
  const dot = text.lastIndexOf(".");
  const names = NAMES[dot < 0 ? "" : text.slice(0, dot)];
  if (!names) return null;
  const options = Object.entries(names).map(([label, detail]) => ({ label, detail, type: /^[A-Z]/.test(label) ? "class" : "variable" }));
  return { from: (found?.from ?? context.pos) + dot + 1, options, validFor: /^\w*$/ };
}

class Editor {
  constructor(element) {
    this.element = element;
    this.area = element.querySelector("textarea");
    this.place = document.createElement("div");
    element.append(this.place);
    const root = this.place.attachShadow({ mode: "open" });
    this.view = new EditorView({ root, parent: root, state: EditorState.create({ doc: this.area.value, extensions: this.extensions() }) });
    this.takeOver();
    this.area.hidden = true; // it still is what the form sends
    this.aborter = new AbortController();
    const { signal } = this.aborter;
    document.querySelector(`label[for="${this.area.id}"]`)?.addEventListener("click", () => this.view.focus(), { signal });
    document.addEventListener("click", (event) => this.clicked(event), { signal });
    this.results = new MutationObserver(() => this.mark());
    const results = document.getElementById("network");
    if (results) this.results.observe(results, { childList: true, subtree: true });
    this.marked = null;
    this.mark();
  }

  // Who is at the field already goes on in the editor, and what was written there is told as if it were written here.
  takeOver() {
    const { selectionStart: anchor, selectionEnd: head, value, defaultValue } = this.area;
    if (document.activeElement === this.area) {
      this.view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(head) });
      this.view.focus();
    }
    if (value !== defaultValue) this.changed();
  }

  extensions() {
    return [
      lineNumbers(),
      lintGutter(),
      foldGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      indentUnit.of("    "),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      search({ top: true }),
      autocompletion({ override: [complete] }),
      python(),
      syntaxHighlighting(colours),
      theme,
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ tabindex: "0", "aria-label": "Code of the network", "aria-describedby": `${this.area.id}-hint` }),
      EditorView.updateListener.of((update) => update.docChanged && this.changed()),
    ];
  }

  changed() {
    this.area.value = this.view.state.doc.toString();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.area.dispatchEvent(new Event("change", { bubbles: true })), 800);
  }

  // Shows at its line what was found wrong, and takes the mark away once all is well.
  mark() {
    const problem = document.getElementById("network-problem");
    const key = problem ? `${problem.dataset.line}:${problem.dataset.message}` : document.querySelector("#network-look [data-fine]") ? "fine" : this.marked;
    if (key === this.marked) return;
    this.marked = key;
    const line = Number(problem?.dataset.line);
    const { doc } = this.view.state;
    const found = [];
    if (line >= 1 && line <= doc.lines) {
      const at = doc.line(line);
      const from = at.from + (at.text.length - at.text.trimStart().length);
      found.push({ from: Math.min(from, at.to), to: at.to, severity: "error", message: problem.dataset.message });
    }
    this.view.dispatch(setDiagnostics(this.view.state, found));
    if (found.length) this.view.dispatch({ effects: EditorView.scrollIntoView(found[0].from, { y: "center" }) });
    this.element.dataset.problemLine = found.length ? String(line) : "";
  }

  clicked(event) {
    const button = event.target.closest?.("[data-goto-line]");
    if (!button) return;
    const line = Math.min(Number(button.dataset.gotoLine), this.view.state.doc.lines);
    const at = this.view.state.doc.line(line);
    this.view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    this.view.focus();
  }

  end() {
    clearTimeout(this.timer);
    this.aborter.abort();
    this.results.disconnect();
    this.view.destroy();
    this.area.hidden = false;
  }
}

export function mount(element) {
  const editor = new Editor(element);
  return () => editor.end();
}
