// Colours and text styles of all charts, from the page's style sheet.

// From little to much; more is darker, on dark ground lighter.
const HEAT = ["#fcfaf1", "#fadea5", "#fbbb6f", "#f8964b", "#ed7143", "#d7514d", "#b83958",
              "#922d5d", "#6a2857", "#432445", "#2b113b"];
const SERIES = 12;
// The parts of a layer's time look the same on every page.
const FIXED = {"compute": 0, "exposed communication": 1, "host": 7, "paper": 7, "here": 0,
               "up": 0, "down": 4, "payload": 7, "to switches": 11, "from switches": 7,
               "kernels run": 0, "rows underway": 1};
const given = new Map(Object.entries(FIXED));
let next = 2;

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// One name, one colour, on all charts of a page. Greys are kept for what they mean.
function colourOf(name) {
  if (!given.has(name)) {
    given.set(name, next);
    do { next = (next + 1) % SERIES; } while (next === 7 || next === 11);
  }
  return variable("--series-" + given.get(name));
}

function theme() {
  return {
    text: variable("--text"), quiet: variable("--quiet"), line: variable("--line"),
    back: variable("--back"), heat: isDark() ? [...HEAT].reverse() : HEAT,
  };
}

const wholes = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const digits = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});

function numberText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 1000 ? wholes.format(value) : digits.format(value);
}

function safe(text) {
  return echarts.format.encodeHTML(String(text));
}

// Rows of a tooltip: [mark, name, value].
function tip(head, rows) {
  const lines = rows.map(([mark, name, value]) =>
    `<div>${mark}${safe(name)} <b>${safe(value)}</b></div>`);
  return `<div style="white-space:normal;max-width:24rem"><b>${safe(head)}</b>` +
         lines.join("") + "</div>";
}

function axisStyle(look) {
  return {
    axisLine: {lineStyle: {color: look.line}}, axisTick: {lineStyle: {color: look.line}},
    axisLabel: {color: look.quiet, fontSize: 12}, nameTextStyle: {color: look.quiet, fontSize: 12},
    splitLine: {lineStyle: {color: look.line, opacity: 0.6}},
  };
}

function base(look) {
  return {
    animation: false, backgroundColor: "transparent",
    textStyle: {color: look.text, fontFamily: getComputedStyle(document.body).fontFamily},
    tooltip: {
      confine: true, backgroundColor: look.back, borderColor: look.line,
      textStyle: {color: look.text, fontSize: 13},
    },
  };
}

function legend(look, names) {
  return {
    type: "scroll", top: 0, left: 0, right: 0, data: names, icon: "roundRect",
    textStyle: {color: look.text}, pageTextStyle: {color: look.quiet},
    pageIconColor: look.text, pageIconInactiveColor: look.line, inactiveColor: look.quiet,
  };
}
