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
  ].filter((panel) => panel.list.length > 0);
}

function timelineHeight(system, gpu) {
  const panels = panelsOf(system, gpu).reduce((sum, panel) => sum + panel.height + 34, 0);
  return 108 + gpu.lanes.length * LANE + (gpu.lanes.length ? 30 : 0) + panels;
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
      return shape && {type: "rect", shape, style: {fill: colourOf(gpu.lanes[row].name)}};
    },
    tooltip: {
      trigger: "item",
      formatter: (cell) => tip(gpu.lanes[cell.data[0]].name, [
        ["", "from", numberText(cell.data[1]) + " µs"], ["", "to", numberText(cell.data[2]) + " µs"],
        ["", "takes", numberText(cell.data[2] - cell.data[1]) + " µs"]]),
    },
  };
}

// A bin's value holds until the next one's begins.
function stepPoints(one, end) {
  const points = one.values.map((value, i) => [i * one.bin, value]);
  if (points.length > 0) points.push([Math.min(end, one.values.length * one.bin),
                                      one.values[one.values.length - 1]]);
  return points;
}

function panelSeries(panel, index, end) {
  return panel.list.map((one) => ({
    type: "line", name: one.name, step: "end", symbol: "none", xAxisIndex: index,
    yAxisIndex: index, stack: panel.stacked ? panel.title : undefined, color: colourOf(one.name),
    lineStyle: {width: panel.stacked ? 0 : 1.5}, areaStyle: {opacity: panel.stacked ? 0.9 : 0.12},
    data: stepPoints(one, end), emphasis: {disabled: true},
  }));
}

function timelineOption(system, gpu, width) {
  const look = theme();
  const panels = panelsOf(system, gpu);
  const side = {left: width < 500 ? 92 : 140, right: 20, outerBoundsMode: "none"};
  const grid = [], xAxis = [], yAxis = [], series = [], title = [];
  let top = 34;
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
    yAxis.push({type: "value", gridIndex: grid.length - 1, max: panel.most, min: 0,
                splitNumber: 3, interval: panel.most ? panel.most / 2 : undefined, ...axisStyle(look),
                axisLabel: {color: look.quiet, fontSize: 11, formatter: numberText}});
    series.push(...panelSeries(panel, grid.length - 1, system.end));
    top += panel.height + 34;
  });
  const all = xAxis.map((_, i) => i);
  const names = [...new Set([...gpu.lanes.map((lane) => lane.name),
                             ...series.slice(gpu.lanes.length ? 1 : 0).map((one) => one.name)])];
  return {
    ...base(look), title, grid, xAxis, yAxis, series,
    legend: {...legend(look, names.filter((name) => series.some((one) => one.name === name)))},
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
