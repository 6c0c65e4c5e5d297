// The editor of a network's code, over a textarea that stays what the form sends.
//
// It lives in a shadow root: there CodeMirror's styles are adopted sheets, which the policy of the pages allows.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, foldGutter, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { NAMES } from "./editor/names.js";

const theme = EditorView.theme({
  "&": { border: "1px solid var(--line-strong)", borderRadius: "var(--radius)", background: "var(--surface)", color: "var(--ink)", fontSize: "var(--text-xs)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", maxHeight: "34rem", minHeight: "16rem", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { background: "var(--sunken)", color: "var(--ink-2)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in srgb, var(--selected) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--focus) 28%, transparent)" },
  ".cm-panels, .cm-tooltip": { background: "var(--sunken)", color: "var(--ink)", borderColor: "var(--line-strong)" },
  ".cm-panels input, .cm-panels button, .cm-panels label": { font: "inherit", color: "var(--ink)", background: "var(--surface)", borderColor: "var(--line-strong)" },
  ".cm-button": { backgroundImage: "none" },
  ".cm-textfield": { border: "1px solid var(--line-strong)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--focus)", color: "var(--surface)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.85", fontStyle: "normal" },
  ".cm-diagnostic": { fontFamily: "var(--sans)" },
  ".cm-searchMatch": { background: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  // The marks of their own are images in the text of a style, which the policy of the pages forbids.
  ".cm-lintRange-error, .cm-lintRange-active": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", textUnderlineOffset: "3px" },
  ".cm-lint-marker-error, .cm-lint-marker-warning": { content: "normal" },
  ".cm-lint-marker-warning::before": { content: '"!"', color: "var(--warn)", fontWeight: "700", lineHeight: "1.4" },
  ".cm-lint-marker-error::before": { content: '"✕"', color: "var(--bad)", fontWeight: "700", lineHeight: "1.4" },
  ".cm-lint-marker": { width: "1em", height: "1.4em" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword], color: "var(--series-4)" },
  { tag: [tags.string, tags.docString], color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--info)" },
  { tag: tags.comment, color: "var(--ink-2)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--action)", fontWeight: "600" },
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
    const results = document.getElementById(element.dataset.results ?? "network");
    if (results) this.results.observe(results, { childList: true, subtree: true, attributeFilter: ["data-findings", "data-line"] });
    this.marked = null;
    this.mark();
    this.goTo(Number(element.dataset.line), false);
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

  // Of an element with `data-readonly` the text is shown only; with `data-plain` it is no network, and no names of its contract are offered; with `data-language="none"` it is no Python.
  extensions() {
    const { readonly, plain, label } = this.element.dataset;
    const names = readonly === undefined && plain === undefined;
    return [
      EditorState.readOnly.of(readonly !== undefined),
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
      names ? autocompletion({ override: [complete] }) : [],
      this.element.dataset.language === "none" ? [] : python(),
      syntaxHighlighting(colours),
      theme,
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ tabindex: "0", "aria-label": label ?? "Code of the network", "aria-describedby": `${this.area.id}-hint` }),
      EditorView.updateListener.of((update) => update.docChanged && this.changed()),
    ];
  }

  changed() {
    this.area.value = this.view.state.doc.toString();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.area.dispatchEvent(new Event("input", { bubbles: true })), 150);
  }

  // Shows at their lines the mistakes of the instant check and what a build found wrong; takes the marks away once all is well.
  mark() {
    const own = this.element.dataset.problem; // of a text that is no code of a network, such as what a network is converted from
    const problem = document.getElementById(own ?? "network-problem");
    const findings = (!own && document.getElementById("code-findings")?.dataset.findings) || "[]";
    const built = problem ? `${problem.dataset.line}:${problem.dataset.message}` : "";
    if (`${built}${findings}` === this.marked) return;
    this.marked = `${built}${findings}`;
    const line = Number(problem?.dataset.line);
    const known = JSON.parse(findings);
    // What a build found goes before what was seen at once in the same line.
    const found = known.filter((each) => each.line !== line).map((each) => this.diagnostic(each.line, each.level, each.sentence, each.column, each.end_column));
    if (line) {
      const same = known.find((each) => each.line === line);
      found.push(this.diagnostic(line, "error", problem.dataset.message, same?.column, same?.end_column));
    }
    const shown = found.filter(Boolean).sort((one, other) => one.from - other.from);
    this.view.dispatch(setDiagnostics(this.view.state, shown));
    if (built && built !== this.built && line <= this.view.state.doc.lines) {
      this.view.dispatch({ effects: EditorView.scrollIntoView(this.view.state.doc.line(line).from, { y: "center" }) });
    }
    this.built = built;
    this.element.dataset.problemLine = shown.length ? String(this.view.state.doc.lineAt(shown[0].from).number) : "";
  }

  // A mark from a column to another, both from 1; without columns, of the whole line. Null where the line is gone.
  diagnostic(line, severity, message, column = 0, endColumn = 0) {
    const { doc } = this.view.state;
    if (!(line >= 1 && line <= doc.lines)) return null;
    const at = doc.line(line);
    const indent = at.text.length - at.text.trimStart().length;
    const from = Math.min(at.to, at.from + (column ? column - 1 : indent));
    const to = endColumn > column ? Math.min(at.to, at.from + endColumn - 1) : at.to;
    return { from, to: Math.max(from, to), severity, message };
  }

  clicked(event) {
    const button = event.target.closest?.("[data-goto-line], [data-add-code]");
    if (!button || this.element.dataset.problem) return;
    if (button.dataset.addCode) this.add(button.dataset.addCode);
    else this.goTo(Number(button.dataset.gotoLine), true);
  }

  // At the end, two blank lines below what stands there; undone as one step.
  add(code) {
    const { doc } = this.view.state;
    const from = doc.toString().trimEnd().length;
    const insert = `\n\n\n${code}\n`;
    const selection = { anchor: from + insert.length - 1 };
    const annotations = isolateHistory.of("full");
    this.view.dispatch({ changes: { from, to: doc.length, insert }, selection, annotations, scrollIntoView: true });
    this.view.focus();
  }

  goTo(line, isFocused) {
    if (!(line >= 1)) return;
    const at = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    if (isFocused) this.view.focus();
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
