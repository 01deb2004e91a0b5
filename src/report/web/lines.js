// Lines and points over a number.

function lineOption(chart, width) {
  const look = theme();
  const names = chart.series.map((one) => one.name);
  const axis = (one) => ({
    type: one.logarithmic ? "log" : "value", name: one.title, nameLocation: "middle",
    scale: !one.from_zero, ...axisStyle(look), splitNumber: width < 500 ? 3 : 5,
    axisLabel: {color: look.quiet, hideOverlap: true, formatter: numberText},
  });
  const labels = chart.x.labels;
  const places = {type: "category", data: labels, boundaryGap: true,
                  axisLabel: {color: look.quiet, hideOverlap: true}};
  const at = (x) => labels.length > 0 ? labels[x] : numberText(x);
  return {
    ...base(look),
    legend: names.length > 1 ? legend(look, names) : undefined,
    grid: {left: 44, right: 18, top: names.length > 1 ? 38 : 12, bottom: 34, containLabel: true},
    xAxis: {...axis(chart.x), ...(labels.length > 0 ? places : {}), nameGap: 28},
    yAxis: {...axis(chart.y), nameGap: 46},
    tooltip: {
      ...base(look).tooltip, trigger: "item",
      formatter: (point) => tip(point.data[2] || point.seriesName, [
        ["", chart.x.title, at(point.data[0])],
        ["", chart.y.title, numberText(point.data[1])]]),
    },
    series: chart.series.map((one) => ({
      type: chart.joined ? "line" : "scatter", name: one.name, data: one.points,
      symbol: "circle", symbolSize: 8, lineStyle: {width: 2}, color: colourOf(one.name),
    })),
  };
}
