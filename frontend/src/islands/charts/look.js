// The colors and words that charts share: tokens of the page, numbers for people, and what ECharts has in common.
import { colours, numberText } from "../curves/dom.js";

const SERIES = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6", "--series-7", "--series-8"];
const OTHERS = ["--ink", "--ink-2", "--line", "--line-strong", "--surface", "--sunken"];
const LONGEST_NAME = 18;

export class Look {
  constructor(element) {
    const found = colours(element.parentElement ?? document.body, [...SERIES, ...OTHERS]);
    this.series = SERIES.map((token) => found[token]);
    this.ink = found["--ink"];
    this.soft = found["--ink-2"];
    this.line = found["--line"];
    this.strong = found["--line-strong"];
    this.surface = found["--surface"];
    this.sunken = found["--sunken"];
    this.font = getComputedStyle(document.body).fontFamily;
  }

  // From the ground to the first color: dark means much on a light ground, and the other way about.
  get ramp() {
    return [this.sunken, this.series[0]];
  }

  get base() {
    return {
      animation: false,
      color: this.series,
      textStyle: { fontFamily: this.font, color: this.ink, fontSize: 12 },
      tooltip: {
        renderMode: "richText", // HTML would bring style attributes, which the policy of the pages refuses
        confine: true,
        backgroundColor: this.surface,
        borderColor: this.strong,
        textStyle: { color: this.ink, fontSize: 12, fontFamily: this.font },
      },
    };
  }

  axis(name, extra = {}) {
    return {
      name,
      nameLocation: "middle",
      nameTextStyle: { color: this.soft },
      axisLine: { lineStyle: { color: this.strong } },
      axisTick: { lineStyle: { color: this.strong } },
      axisLabel: { color: this.soft, ...extra },
      splitLine: { lineStyle: { color: this.line } },
    };
  }

  legend(names) {
    if (names.length < 2) return undefined;
    const texts = { color: this.ink, fontFamily: this.font };
    return { type: "scroll", top: 0, left: 0, textStyle: texts, pageTextStyle: texts, pageIconColor: this.soft, icon: "roundRect", data: names };
  }
}

export function valueText(value, isPercent) {
  if (value == null || typeof value === "string") return value ?? "–";
  return isPercent ? `${Number((100 * value).toPrecision(3))} %` : numberText(value);
}

// A name such as a path of settings, whose begin and end tell it from others.
export function middleCut(text, most) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(head + 1 - most)}`;
}

export function shortened(text, most = LONGEST_NAME) {
  const whole = String(text);
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
}
