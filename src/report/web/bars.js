// Bars that lie, a row per category: names of any length can be read, also on a phone.

const LABEL = 12;

// The names in lines, and how wide they are.
function barLabels(chart, width) {
  const room = Math.min(260, 0.36 * width);
  const lines = chart.categories.map((name) => wrapped(name, room, LABEL));
  return {lines, most: Math.max(...lines.map((one) => one.length))};
}

// Stacked parts that are nothing everywhere are left out.
function barSeries(chart) {
  const some = chart.series.filter((one) => one.values.some((value) => value));
  return chart.stacked && some.length > 0 ? some : chart.series;
}

function barTop(series, width) {
  return series.length > 1 ? legendHeight(series.map((one) => one.name), width) : 8;
}

function barHeight(chart, width) {
  const series = barSeries(chart);
  const beside = chart.stacked ? 1 : series.length;
  const row = Math.max(26, 12 * beside + 12, 14 * barLabels(chart, width).most + 8);
  return 40 + barTop(series, width) + chart.categories.length * row;
}

function barOption(chart, width) {
  const look = theme();
  const shown = barSeries(chart);
  const names = shown.map((one) => one.name);
  const several = names.length > 1;
  const labels = barLabels(chart, width).lines;
  const sums = chart.categories.map((_, i) =>
    shown.reduce((sum, one) => sum + (one.values[i] ?? 0), 0));
  const last = (s) => s === shown.length - 1;
  return {
    ...base(look),
    legend: several ? legend(look, names) : undefined,
    grid: {left: 4, right: 64, top: barTop(shown, width), bottom: 30, containLabel: true},
    xAxis: {type: "value", name: chart.unit, nameLocation: "middle", nameGap: 28,
            splitNumber: width < 500 ? 3 : 5, ...axisStyle(look)},
    yAxis: {type: "category", inverse: true, data: chart.categories, ...axisStyle(look),
            axisLabel: {color: look.text, fontSize: LABEL, lineHeight: 14, interval: 0,
                        formatter: (_, i) => labels[i].join("\n")}},
    tooltip: {
      ...base(look).tooltip, trigger: "axis", axisPointer: {type: "shadow"},
      formatter: (rows) => tip(rows[0].name, rows.map((row) =>
        [row.marker, several ? row.seriesName : "", numberText(row.value) + " " + chart.unit])),
    },
    series: shown.map((one, s) => ({
      type: "bar", name: one.name, stack: chart.stacked ? "all" : undefined, barMaxWidth: 22,
      data: one.values,
      itemStyle: {color: several || !chart.systems || chart.categories.length > SERIES
        ? colourOf(several ? one.name : "here")
        : (cell) => colourOf(chart.categories[cell.dataIndex])},
      label: {
        show: chart.stacked ? last(s) : shown.length <= 4, position: "right",
        color: look.text, fontSize: 11,
        formatter: (cell) => numberText(chart.stacked ? sums[cell.dataIndex] : cell.value),
      },
    })),
  };
}
