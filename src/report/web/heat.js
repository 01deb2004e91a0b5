// Maps of rows × columns.

function heatHeight(chart, width) {
  const inner = Math.max(120, width - 110);
  const square = inner / chart.columns.length;  // of a cell as high as wide
  const cell = Math.max(3, Math.min(30, square, 560 / chart.rows.length));
  return 124 + Math.max(60, Math.round(cell * chart.rows.length));
}

function heatOption(chart, layer, width) {
  const look = theme();
  const values = chart.layers[layer].values;
  const most = chart.cap > 0 ? chart.cap : values.reduce((a, b) => Math.max(a, b), 0) || 1;
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
      type: "continuous", min: 0, max: most, orient: "horizontal",
      left: "center", bottom: 4, itemHeight: Math.min(220, width / 2), itemWidth: 12,
      text: [numberText(most) + " " + chart.unit, "0"], textStyle: {color: look.text},
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
              emphasis: {itemStyle: {borderColor: look.text, borderWidth: 1}}}],
  };
}
