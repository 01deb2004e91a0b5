// Lines and points over a number.

function lineHeight(chart, width) {
  const names = chart.series.map((one) => one.name);
  return 320 + (names.length > 1 ? legendHeight(names, width) : 0);
}

// What points are measured by.
function guide(look) {
  return {symbol: "none", color: look.quiet, itemStyle: {color: look.quiet}, silent: true,
          lineStyle: {width: 1, type: "dashed", color: look.quiet}};
}

function lineOption(chart, width) {
  const look = theme();
  const names = chart.series.map((one) => one.name);
  const top = names.length > 1 ? legendHeight(names, width) : 12;
  const axis = (one) => ({
    type: one.logarithmic ? "log" : "value", name: one.title, nameLocation: "middle",
    scale: !one.from_zero, ...axisStyle(look), splitNumber: width < 500 ? 3 : 5,
    axisLabel: {color: look.quiet, hideOverlap: true, formatter: numberText},
  });
  const labels = chart.x.labels;
  const places = {type: "category", data: labels, boundaryGap: true,
                  axisLabel: {color: look.quiet, hideOverlap: true, formatter: undefined}};
  const at = (x) => labels.length > 0 ? labels[x] : numberText(x);
  return {
    ...base(look),
    legend: names.length > 1 ? legend(look, names) : undefined,
    grid: {left: 44, right: 18, top, bottom: 34, containLabel: true},
    xAxis: {...axis(chart.x), ...(labels.length > 0 ? places : {}), nameGap: 28},
    yAxis: {...axis(chart.y), nameGap: 46},
    tooltip: {
      ...base(look).tooltip, trigger: "item",
      formatter: (point) => tip(point.data[2] || point.seriesName, [
        ["", chart.x.title, at(point.data[0])],
        ["", chart.y.title, numberText(point.data[1])]]),
    },
    series: chart.series.map((one) => ({
      type: chart.joined || one.guide ? "line" : "scatter", name: one.name, data: one.points,
      symbol: "circle", symbolSize: 8, lineStyle: {width: 2}, color: colourOf(one.name),
      label: {show: one.points.some((point) => point.length > 3), position: "top", fontSize: 11,
              color: look.quiet, formatter: (point) => point.data[3] ?? ""},
      labelLayout: {hideOverlap: true},
      ...(one.guide ? guide(look) : {}),
    })),
  };
}
