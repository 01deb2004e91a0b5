// One GPU over time, panels above one another that share their clock: what went on, SMs by kernel,
// link directions, units of its hub, units of the switches.

const PANEL = 104;
const LANE = 18;

function panelsOf(system, gpu) {
  return [
    {title: "SMs", list: gpu.sms, stacked: true, height: 1.5 * PANEL},
    {title: "links, % busy", list: gpu.links, most: 100, height: PANEL},
    {title: "hub, packets/µs", list: gpu.units, height: PANEL},
    {title: "switches, packets/µs", list: system.switches, height: PANEL},
  ].map((panel) => ({...panel, list: panel.list.filter((one) => one.values.some((v) => v > 0))}))
    .filter((panel) => panel.list.length > 0);
}

// Every colour's name once; of lanes their axis tells it.
function timelineNames(panels) {
  return [...new Set(panels.flatMap((panel) => panel.list.map((one) => one.name)))];
}

function timelineHeight(system, gpu, width) {
  const shown = panelsOf(system, gpu);
  const panels = shown.reduce((sum, panel) => sum + panel.height + 34, 0);
  return 84 + legendHeight(timelineNames(shown), width) + gpu.lanes.length * LANE + (gpu.lanes.length ? 30 : 0) + panels;
}

// Which to show first: one whose hubs have units, else one that sends something.
function tellingSystem(systems) {
  const units = systems.findIndex((one) => one.gpus[0].units.length > 0);
  if (units >= 0) return units;
  const sends = systems.findIndex((one) => one.gpus.some((gpu) =>
    gpu.links.some((link) => link.values.some((value) => value > 0))));
  return Math.max(0, sends);
}

function laneSeries(gpu, look) {
  const data = gpu.lanes.flatMap((lane, row) =>
    Array.from({length: lane.spans.length / 2}, (_, i) =>
      [row, lane.spans[2 * i], lane.spans[2 * i + 1]]));
  return {
    type: "custom", name: "lanes", xAxisIndex: 0, yAxisIndex: 0, data, clip: true,
    encode: {x: [1, 2], y: 0},
    renderItem(params, api) {
      const row = api.value(0);
      const from = api.coord([api.value(1), row]);
      const to = api.coord([api.value(2), row]);
      const high = api.size([0, 1])[1] * 0.7;
      const area = params.coordSys;
      const shape = echarts.graphic.clipRectByRect(
        {x: from[0], y: from[1] - high / 2, width: Math.max(1, to[0] - from[0]), height: high},
        {x: area.x, y: area.y, width: area.width, height: area.height});
      return shape && {type: "rect", shape, style: {fill: timelineColour(gpu.lanes[row].name)}};
    },
    tooltip: {
      trigger: "item",
      formatter: (cell) => tip(gpu.lanes[cell.data[0]].name, [
        ["", "from", numberText(cell.data[1]) + " µs"], ["", "to", numberText(cell.data[2]) + " µs"],
        ["", "takes", numberText(cell.data[2] - cell.data[1]) + " µs"]]),
    },
  };
}

// A bin's value holds until the next one's begins; behind the last one there is nothing, up to the
// layer's end.
function binPoints(one, end) {
  const points = one.values.map((value, i) => [i * one.bin, value]);
  const last = one.values.length * one.bin;
  if (last < end) points.push([last, 0]);
  points.push([end, points[points.length - 1][1]]);
  return points;
}

// The corners of steps through points, in pixels.
function corners(api, points, heights) {
  return points.flatMap(([x], i) => {
    const at = api.coord([x, heights[i]]);
    return i === 0 ? [at] : [[at[0], api.coord([x, heights[i - 1]])[1]], at];
  });
}

// Areas are drawn here and not by the library's lines, which leave out points that lie close
// together: steps would become slopes, and of stacked areas each another one.
function stepSeries(one, index, end, stacked, below) {
  const colour = timelineColour(one.name);
  const data = binPoints(one, end);
  const top = data.map(([, value], i) => value + below[i]);
  return {
    type: "custom", name: one.name, xAxisIndex: index, yAxisIndex: index, data, clip: true,
    progressive: 0, color: colour, itemStyle: {color: colour},
    renderItem(params, api) {
      if (params.dataIndexInside > 0) return undefined;  // the first draws all of it
      const upper = corners(api, data, top);
      const lower = corners(api, data, below).reverse();
      return {type: "group", children: [
        {type: "polygon", shape: {points: [...upper, ...lower]}, silent: true,
         style: {fill: colour, opacity: stacked ? 0.9 : 0.12}},
        {type: "polyline", shape: {points: stacked ? [] : upper}, silent: true,
         style: {stroke: colour, lineWidth: 1.5, fill: "none"}},
      ]};
    },
  };
}

// Bins of stacked series are alike.
function panelSeries(panel, index, end) {
  const count = (one) => binPoints(one, end).length;
  let below = [];
  return panel.list.map((one) => {
    if (below.length === 0 || !panel.stacked) below = new Array(count(one)).fill(0);
    const series = stepSeries(one, index, end, panel.stacked, below);
    below = below.map((sum, i) => sum + series.data[i][1]);
    return series;
  });
}

// The axis's end: stacked values reach their sum.
function panelMost(panel) {
  if (panel.most || !panel.stacked) return panel.most;
  return panel.list[0].values.reduce((most, _, i) =>
    Math.max(most, panel.list.reduce((sum, one) => sum + one.values[i], 0)), 0);
}

function timelineOption(system, gpu, width) {
  const look = theme();
  const panels = panelsOf(system, gpu);
  const side = {left: width < 500 ? 92 : 140, right: 20, outerBoundsMode: "none"};
  const grid = [], xAxis = [], yAxis = [], series = [], title = [];
  const names = timelineNames(panels);
  let top = 10 + legendHeight(names, width);
  const clock = (shown) => ({
    type: "value", min: 0, max: system.end, gridIndex: grid.length - 1, ...axisStyle(look),
    name: shown ? "µs" : "", nameLocation: "end", nameGap: 4,
    axisLabel: {show: shown, color: look.quiet, hideOverlap: true, showMaxLabel: false,
                formatter: numberText},
  });
  const heading = (text) => title.push({text, left: 0, top: top - 22, textStyle: {
    color: look.quiet, fontSize: 12, fontWeight: "normal"}});
  if (gpu.lanes.length > 0) {
    const height = gpu.lanes.length * LANE;
    top += 14;
    heading("what went on");
    grid.push({...side, top, height});
    xAxis.push(clock(panels.length === 0));
    yAxis.push({type: "category", inverse: true, data: gpu.lanes.map((lane) => lane.name),
                ...axisStyle(look), axisTick: {show: false},
                axisLabel: {color: look.text, fontSize: 11, interval: 0, overflow: "truncate",
                            width: side.left - 10},
                splitLine: {show: false}});
    series.push(laneSeries(gpu, look));
    top += height + 36;
  }
  panels.forEach((panel, i) => {
    heading(panel.title);
    grid.push({...side, top, height: panel.height});
    xAxis.push(clock(i === panels.length - 1));
    yAxis.push({type: "value", gridIndex: grid.length - 1, min: 0,
                max: panel.stacked ? roundedUp(panelMost(panel)) : panel.most,
                splitNumber: 3, interval: panel.most ? panel.most / 2 : undefined, ...axisStyle(look),
                axisLabel: {color: look.quiet, fontSize: 11, formatter: numberText}});
    series.push(...panelSeries(panel, grid.length - 1, system.end));
    top += panel.height + 34;
  });
  const all = xAxis.map((_, i) => i);
  return {
    ...base(look), title, grid, xAxis, yAxis, series,
    legend: legend(look, names),
    axisPointer: {link: [{xAxisIndex: all}]},
    tooltip: {
      ...base(look).tooltip, trigger: "axis", axisPointer: {type: "line"},
      formatter: (rows) => {
        const list = (Array.isArray(rows) ? rows : [rows]).filter((row) => row.data[1] > 0);
        const at = Array.isArray(rows) ? rows[0].axisValue : rows.data[0];
        return tip(numberText(at) + " µs", list.map((row) =>
          [row.marker, row.seriesName, numberText(row.data[1])]));
      },
    },
    dataZoom: [
      {type: "inside", xAxisIndex: all, filterMode: "none", zoomOnMouseWheel: true,
       moveOnMouseMove: true, preventDefaultMouseMove: false},
      {type: "slider", xAxisIndex: all, filterMode: "none", bottom: 6, height: 24, left: side.left,
       right: side.right,
       textStyle: {color: look.quiet}, borderColor: look.line, showDataShadow: false,
       labelFormatter: (value) => numberText(value) + " µs"},
    ],
  };
}

// Zooms or moves by buttons, for those without a wheel. `change` maps [start, end] in %.
function changeZoom(chart, change) {
  const {start, end} = chart.getOption().dataZoom[0];
  const [from, to] = change(start, end);
  chart.dispatchAction({type: "dataZoom", start: Math.max(0, from), end: Math.min(100, to)});
}

const ZOOMS = [
  ["Zoom in", (from, to) => [from + (to - from) / 4, to - (to - from) / 4]],
  ["Zoom out", (from, to) => [from - (to - from) / 2, to + (to - from) / 2]],
  ["Earlier", (from, to) => [Math.max(0, from - (to - from) / 2),
                             Math.max(to - from, to - (to - from) / 2)]],
  ["Later", (from, to) => [Math.min(100 - (to - from), from + (to - from) / 2),
                           Math.min(100, to + (to - from) / 2)]],
  ["Whole", () => [0, 100]],
];
