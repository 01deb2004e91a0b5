// Bars that lie, a row per category: names of any length can be read, also on a phone.

function labelWidth(chart, width) {
  const longest = Math.max(...chart.categories.map((name) => name.length));
  return Math.min(260, 0.36 * width, 7 * longest + 8);
}

function barHeight(chart, width) {
  const beside = chart.stacked ? 1 : chart.series.length;
  const longest = Math.max(...chart.categories.map((name) => name.length));
  const lines = Math.ceil(longest * 6.6 / labelWidth(chart, width));
  return 74 + chart.categories.length * Math.max(26, 12 * beside + 12, 14 * lines + 8);
}

function barOption(chart, width) {
  const look = theme();
  const names = chart.series.map((one) => one.name);
  const several = names.length > 1;
  const sums = chart.categories.map((_, i) =>
    chart.series.reduce((sum, one) => sum + (one.values[i] ?? 0), 0));
  const last = (s) => s === chart.series.length - 1;
  return {
    ...base(look),
    legend: several ? legend(look, names) : undefined,
    grid: {left: 4, right: 64, top: several ? 34 : 8, bottom: 30, containLabel: true},
    xAxis: {type: "value", name: chart.unit, nameLocation: "middle", nameGap: 28,
            splitNumber: width < 500 ? 3 : 5, ...axisStyle(look)},
    yAxis: {type: "category", inverse: true, data: chart.categories, ...axisStyle(look),
            axisLabel: {color: look.text, fontSize: 12, overflow: "break",
                        lineHeight: 14, width: labelWidth(chart, width), interval: 0}},
    tooltip: {
      ...base(look).tooltip, trigger: "axis", axisPointer: {type: "shadow"},
      formatter: (rows) => tip(rows[0].name, rows.map((row) =>
        [row.marker, several ? row.seriesName : "", numberText(row.value) + " " + chart.unit])),
    },
    series: chart.series.map((one, s) => ({
      type: "bar", name: one.name, stack: chart.stacked ? "all" : undefined, barMaxWidth: 22,
      data: one.values,
      itemStyle: {color: several || !chart.systems || chart.categories.length > SERIES
        ? colourOf(several ? one.name : "here")
        : (cell) => colourOf(chart.categories[cell.dataIndex])},
      label: {
        show: chart.stacked ? last(s) : chart.series.length <= 4, position: "right",
        color: look.text, fontSize: 11,
        formatter: (cell) => numberText(chart.stacked ? sums[cell.dataIndex] : cell.value),
      },
    })),
  };
}
