// Reads the small charts of the machine's load: one cursor for all of them, by pointer or by arrow keys, with the values
// of that moment in place of the newest ones. The charts come drawn; a morph brings new ones under the same ids.
let clock = null; // made when it is first needed: it takes the browser ten milliseconds

function timeOf(seconds) {
  clock ??= new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return clock.format(new Date(seconds * 1000));
}

export function mount(section) {
  const parsed = new WeakMap(); // chart → its data: a pointer asks for those of all charts at each of its moves
  let place = null; // share of the width, the same in all charts; null for the newest values

  const charts = () => [...section.querySelectorAll(".load-chart")];
  const dataOf = (chart) => {
    const text = chart.dataset.chart;
    if (parsed.get(chart)?.text !== text) parsed.set(chart, { text, data: JSON.parse(text) });
    return parsed.get(chart).data;
  };
  const nearest = (data) => {
    const wanted = place * (data.x.at(-1) || 1);
    let best = 0;
    for (let index = 1; index < data.x.length; index += 1) {
      if (Math.abs(data.x[index] - wanted) < Math.abs(data.x[best] - wanted)) best = index;
    }
    return best;
  };
  const show = () => {
    for (const chart of charts()) {
      const figure = chart.closest(".load");
      const now = figure.querySelector(".load-now");
      const cursor = chart.querySelector(".load-cursor");
      const said = figure.querySelector(".load-at");
      if (place === null) {
        now.textContent = now.dataset.now;
        said.textContent = "";
        cursor.toggleAttribute("hidden", true);
        continue;
      }
      const data = dataOf(chart);
      const index = nearest(data);
      now.textContent = data.lines[0].texts[index] || "–";
      said.textContent = timeOf(data.times[index]);
      cursor.setAttribute("d", `M${data.x[index]} 0V56`);
      cursor.toggleAttribute("hidden", false);
    }
  };
  const leave = () => {
    place = null;
    show();
  };
  const move = (event) => {
    const chart = event.target.closest?.(".load-chart");
    if (!chart) return;
    const box = chart.getBoundingClientRect();
    place = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    show();
  };
  const press = (event) => {
    const chart = event.target.closest?.(".load-chart");
    const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") leave();
    if (!chart || way === undefined) return;
    event.preventDefault();
    const data = dataOf(chart);
    const last = data.x.length - 1;
    const index = place === null ? last + (way < 0 ? way + 1 : 0) : nearest(data) + way;
    place = data.x[Math.min(last, Math.max(0, index))] / (data.x[last] || 1);
    show();
  };
  const out = (event) => {
    if (!section.contains(event.relatedTarget)) leave();
  };

  section.addEventListener("pointermove", move);
  section.addEventListener("pointerleave", leave);
  section.addEventListener("keydown", press);
  section.addEventListener("focusout", out);
  document.addEventListener("htmx:after:swap", show);
  return () => {
    section.removeEventListener("pointermove", move);
    section.removeEventListener("pointerleave", leave);
    section.removeEventListener("keydown", press);
    section.removeEventListener("focusout", out);
    document.removeEventListener("htmx:after:swap", show);
  };
}
