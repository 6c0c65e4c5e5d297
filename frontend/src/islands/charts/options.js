// From the pages' own description of a chart to the options of ECharts.
import { dashOf } from "../curves/dom.js";
import { middleCut, shortened, valueText } from "./look.js";

const MANY_BARS = 60;
const FEW_CELLS = 400;

export function optionOf(asked, look, width) {
  const make = { bar, heat, scatter, parallel }[asked.kind];
  if (!make) throw new Error(`There is no chart of kind ${asked.kind}.`);
  return { ...look.base, ...make(asked, look, width) };
}

function zoom(look, place, count) {
  if (count <= MANY_BARS) return [];
  return [{ type: "slider", ...place, startValue: 0, endValue: MANY_BARS - 1, borderColor: look.line, fillerColor: look.line, textStyle: { color: look.soft }, brushSelect: false, showDataShadow: false }];
}

function bar(asked, look) {
  const lies = Boolean(asked.across);
  const isMany = asked.names.length > MANY_BARS;
  const legend = look.legend(asked.series.map((each) => each.name));
  const names = {
    ...look.axis(asked.x, { formatter: (text) => shortened(asked.close ? text.split(" to ")[0] : text), hideOverlap: true }),
    type: "category",
    data: asked.names,
    inverse: lies,
    nameGap: lies ? 110 : 28,
    splitLine: { show: false },
  };
  const values = {
    ...look.axis(asked.y, { formatter: (value) => valueText(value, asked.percent), hideOverlap: true }),
    type: asked.log ? "log" : "value",
    nameGap: lies ? 28 : 46,
    minInterval: asked.percent || asked.log ? undefined : 1,
  };
  return {
    legend,
    grid: { left: lies ? 130 : 62, right: lies && isMany ? 48 : 16, top: legend ? 34 : 12, bottom: !lies && isMany ? 78 : 46 },
    xAxis: lies ? values : names,
    yAxis: lies ? names : values,
    dataZoom: zoom(look, lies ? { yAxisIndex: 0, right: 8, width: 18 } : { xAxisIndex: 0, bottom: 6, height: 18 }, asked.names.length),
    tooltip: { ...look.base.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (value) => valueText(value, asked.percent) },
    series: asked.series.map((each) => ({
      type: "bar",
      name: each.name,
      data: asked.log ? each.values.map((value) => (value > 0 ? value : null)) : each.values,
      stack: asked.stacked ? "all" : undefined,
      barCategoryGap: asked.close ? "2%" : "25%",
      barMaxWidth: asked.close ? undefined : 56,
      cursor: asked.links ? "pointer" : "default",
    })),
  };
}

function heat(asked, look, width) {
  const cells = [];
  let most = 0;
  asked.values.forEach((row, y) =>
    row.forEach((value, x) => {
      if (value == null) return;
      const share = asked.shares?.[y]?.[x] ?? (asked.log ? Math.log1p(value) : value);
      most = Math.max(most, share);
      cells.push([x, y, share, value]);
    }),
  );
  const isTilted = asked.columns.length > 8 && asked.columns.some((name) => String(name).length > 3);
  const isSmall = cells.length <= FEW_CELLS && width / Math.max(1, asked.columns.length) > 34;
  const names = (title, data, gap) => ({
    ...look.axis(title, { formatter: (text) => shortened(text, 14), hideOverlap: true }),
    type: "category",
    data,
    nameGap: gap,
    splitLine: { show: false },
    splitArea: { show: false },
  });
  const columns = names(asked.x, asked.columns, isTilted ? 78 : 30);
  columns.axisLabel.rotate = isTilted ? 60 : 0;
  return {
    grid: { left: 116, right: 12, top: 12, bottom: isTilted ? 98 : 50 },
    xAxis: columns,
    yAxis: { ...names(asked.y, asked.rows, 98), inverse: true },
    visualMap: { show: false, min: 0, max: asked.shares ? 1 : most || 1, dimension: 2, inRange: { color: look.ramp } },
    tooltip: {
      ...look.base.tooltip,
      formatter: ({ value }) => `${asked.y ?? "Row"}: ${asked.rows[value[1]]}\n${asked.x ?? "Column"}: ${asked.columns[value[0]]}\n${valueText(value[3], asked.percent)}`,
    },
    series: [
      {
        type: "heatmap",
        data: cells.map((value) => ({ value, label: { color: value[2] > 0.55 * (asked.shares ? 1 : most) ? look.surface : look.ink } })),
        progressive: 4000,
        cursor: asked.link ? "pointer" : "default",
        itemStyle: { borderColor: look.surface, borderWidth: isSmall ? 1 : 0 },
        emphasis: { itemStyle: { borderColor: look.ink, borderWidth: 1 } },
        label: { show: isSmall, formatter: ({ value }) => valueText(value[3], asked.percent) },
      },
    ],
  };
}

function scatter(asked, look) {
  const axis = (title, isLog, gap) => ({ ...look.axis(title, { formatter: (value) => valueText(value), hideOverlap: true }), type: isLog ? "log" : "value", scale: true, nameGap: gap });
  const legend = look.legend(asked.groups.map((each) => each.name));
  return {
    legend,
    grid: { left: 62, right: 18, top: legend ? 34 : 14, bottom: 46 },
    xAxis: axis(asked.x, asked.x_log, 28),
    yAxis: axis(asked.y, asked.y_log, 46),
    tooltip: {
      ...look.base.tooltip,
      formatter: ({ seriesName, data }) => [data[2] ?? seriesName, `${asked.x}: ${valueText(data[0])}`, `${asked.y}: ${valueText(data[1])}`].join("\n"),
    },
    series: asked.groups.map((each, number) => ({
      type: "scatter",
      name: each.name,
      data: each.points,
      symbol: ["circle", "triangle", "rect", "diamond", "roundRect", "pin"][number % 6],
      symbolSize: each.points.length > 500 ? 5 : 8,
      large: each.points.length > 5000,
      itemStyle: { opacity: each.points.length > 500 ? 0.5 : 0.85 },
      cursor: each.points.some((point) => point[3]) ? "pointer" : "default",
    })).concat(asked.diagonal ? diagonal(asked, look) : []),
  };
}

// A line where both values are the same, behind the points.
function diagonal(asked, look) {
  const values = asked.groups.flatMap((each) => each.points.flatMap((point) => point.slice(0, 2)));
  if (!values.length) return [];
  const ends = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const lineStyle = { color: look.soft, width: 1, type: "dashed" };
  return [{ type: "line", data: ends.map((value) => [value, value]), symbol: "none", silent: true, z: 1, lineStyle, tooltip: { show: false } }];
}

/** Range of an axis whose values all read the same: ticks between them would, too. */
function aroundOneValue(axis, values) {
  const numbers = values.filter((value) => typeof value === "number");
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (axis.categories || axis.log || numbers.length === 0 || valueText(low) !== valueText(high)) return {};
  const room = Math.abs(low) / 2 || 1;
  return { min: low - room, max: high + room };
}

function parallel(asked, look, width) {
  const chosen = asked.colour ?? asked.axes.length - 1;
  const values = asked.lines.map((line) => line.values[chosen]).filter((value) => typeof value === "number");
  const isCategory = Boolean(asked.axes[chosen]?.categories);
  const place = (value, number) => (value == null ? NaN : asked.axes[number].categories ? asked.axes[number].categories.indexOf(value) : value);
  const ends = isCategory ? [0, Math.max(1, asked.axes[chosen].categories.length - 1)] : [Math.min(...values), Math.max(...values)];
  const isOwn = Boolean(asked.own_colors);
  const isCramped = width / Math.max(1, asked.axes.length) < 90;
  return {
    parallel: { left: 48, right: 64, top: 54, bottom: isOwn || isCategory ? 24 : 52, axisExpandable: asked.axes.length > 10, axisExpandCount: 8 },
    parallelAxis: asked.axes.map((axis, dim) => {
      const drawn = look.axis(middleCut(axis.name, Math.max(8, Math.floor(width / asked.axes.length / 7) - 1)), { formatter: (value) => (axis.categories ? shortened(value, isCramped ? 8 : 14) : valueText(value)), hideOverlap: true });
      return {
        ...drawn,
        ...aroundOneValue(axis, asked.lines.map((line) => line.values[dim])),
        dim,
        nameLocation: "end",
        nameTextStyle: { color: look.ink, align: dim === 0 ? "left" : dim === asked.axes.length - 1 ? "right" : "center", padding: dim === 0 ? [0, 0, 0, -40] : dim === asked.axes.length - 1 ? [0, -56, 0, 0] : 0 },
        axisLabel: { ...drawn.axisLabel, color: look.ink, textBorderColor: look.surface, textBorderWidth: 3 },
        type: axis.categories ? "category" : axis.log ? "log" : "value",
        data: axis.categories,
        scale: true,
        areaSelectStyle: { width: 18, borderColor: look.ink, color: look.soft, opacity: 0.25 },
      };
    }),
    visualMap: isOwn ? undefined : { show: !isCategory, type: "continuous", orient: "horizontal", left: "center", bottom: 0, itemWidth: 10, itemHeight: 160, text: ends.toReversed().map((value) => valueText(value)), textStyle: { color: look.soft }, dimension: chosen, min: ends[0], max: ends[1] > ends[0] ? ends[1] : ends[0] + 1, inRange: { color: [look.series[0], look.series[3], look.series[1]] } },
    tooltip: {
      ...look.base.tooltip,
      trigger: "item",
      formatter: ({ dataIndex }) => {
        const line = asked.lines[dataIndex];
        return [line.name, ...asked.axes.map((axis, number) => `${axis.name}: ${valueText(line.values[number])}`)].join("\n");
      },
    },
    series: [
      {
        type: "parallel",
        smooth: false,
        inactiveOpacity: 0.06,
        activeOpacity: 0.9,
        lineStyle: { width: asked.lines.length > 200 ? 1 : 2, opacity: asked.lines.length > 200 ? 0.4 : 0.75 },
        emphasis: { lineStyle: { width: 4, opacity: 1 } },
        data: asked.lines.map((line, number) => ({ name: line.name, value: line.values.map(place), ...(isOwn ? { lineStyle: { color: look.series[number], type: dashOf(number) ?? "solid" } } : {}) })),
      },
    ],
  };
}
