// Maps of rows × columns.

function heatHeight(chart, width) {
  const inner = Math.max(120, width - 110);
  const square = inner / chart.columns.length;  // side of a square cell
  const cell = Math.max(3, Math.min(30, square, 560 / chart.rows.length));
  return 124 + Math.max(60, Math.round(cell * chart.rows.length));
}

// From the least to the most, so that differences can be seen; what a GPU sends itself is no
// least. All alike: from 0.
function heatRange(chart, values) {
  const columns = chart.columns.length;
  const square = columns > 1 && chart.rows.length === columns &&
    chart.rows.every((name, i) => name === chart.columns[i]);
  const told = values.filter((value, i) => !square || i % columns !== Math.floor(i / columns));
  const most = chart.cap > 0 ? chart.cap : values.reduce((a, b) => Math.max(a, b), 0) || 1;
  const least = told.reduce((a, b) => Math.min(a, b), most);
  return {least: least < most ? least : 0, most};
}

const MOST_TOLD = 16;  // rows and columns with numbers in them

// Numbers in cells, on dark ones light, where there is room.
function heatLabel(chart, range, width) {
  const cell = (width - 74) / chart.columns.length;
  const dark = (value) => (value - range.least) / (range.most - range.least) > 0.5;
  return {
    show: Math.max(chart.rows.length, chart.columns.length) <= MOST_TOLD && cell >= 34,
    formatter: ({data}) => `{${dark(data[2]) ? "dark" : "light"}|${fewDigits.format(data[2])}}`,
    rich: {dark: {color: isDark() ? "#000" : "#fff", fontSize: 11},
           light: {color: isDark() ? "#fff" : "#000", fontSize: 11}},
  };
}

function heatOption(chart, layer, width) {
  const look = theme();
  const values = chart.layers[layer].values;
  const range = heatRange(chart, values);
  const columns = chart.columns.length;
  const data = values.map((value, i) => [i % columns, Math.floor(i / columns), value]);
  const axis = (title, names) => ({
    type: "category", data: names, name: title, nameLocation: "middle", ...axisStyle(look),
    splitArea: {show: false}, axisTick: {show: false},
  });
  return {
    ...base(look),
    grid: {left: 62, right: 12, top: 44, bottom: 64},
    xAxis: {...axis(chart.column_title, chart.columns), nameGap: 24, position: "top"},
    yAxis: {...axis(chart.row_title, chart.rows), nameGap: 44, inverse: true},
    visualMap: {
      type: "continuous", min: range.least, max: range.most, orient: "horizontal",
      left: "center", bottom: 4, itemHeight: Math.min(220, width / 2), itemWidth: 12,
      text: [numberText(range.most) + " " + chart.unit, numberText(range.least)], textStyle: {color: look.text},
      inRange: {color: look.heat},
    },
    tooltip: {
      ...base(look).tooltip,
      formatter: (cell) => tip(
        `${chart.row_title} ${chart.rows[cell.data[1]]}, ` +
        `${chart.column_title} ${chart.columns[cell.data[0]]}`,
        [["", "", `${numberText(cell.data[2])} ${chart.unit}`]]),
    },
    series: [{type: "heatmap", name: chart.layers[layer].name, data, progressive: 8000,
              label: heatLabel(chart, range, width),
              emphasis: {itemStyle: {borderColor: look.text, borderWidth: 1}}}],
  };
}
