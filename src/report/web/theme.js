// Colours and text styles of all charts, from the page's style sheet.

// From little to much; more is darker, on dark ground lighter.
const HEAT = ["#fcfaf1", "#fadea5", "#fbbb6f", "#f8964b", "#ed7143", "#d7514d", "#b83958",
              "#922d5d", "#6a2857", "#432445", "#2b113b"];
const SERIES = 12;
// The style sheet's colours that mean nothing by themselves.
const FREE = [2, 3, 4, 5, 6, 8, 9, 10];
// The parts of a layer's time look the same on every page.
const FIXED = new Map(Object.entries({
  "compute": 0, "exposed communication": 1, "host": 7, "paper": 7, "here": 0, "up": 0, "down": 4,
  "payload": 7}));
// A time line's colours; kernels and units get others, whatever colours systems have.
const FIXED_OVER_TIME = new Map(Object.entries({
  "kernels run": 0, "communication": 1, "to switches": 11, "from switches": 7}));
const given = new Map(), givenOverTime = new Map();

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// One name, one colour, on all charts of a page. Where colours are used up they come again lighter,
// then darker.
function colourFrom(known, fixed, name) {
  if (fixed.has(name)) return variable("--series-" + fixed.get(name));
  if (!known.has(name)) known.set(name, known.size);
  const number = known.get(name);
  const colour = variable("--series-" + FREE[number % FREE.length]);
  const round = Math.floor(number / FREE.length) % 3;
  return round === 0 ? colour : echarts.color.lift(colour, round === 1 ? 0.5 : -0.45);
}

function colourOf(name) {
  return colourFrom(given, FIXED, name);
}

function timelineColour(name) {
  return colourFrom(givenOverTime, FIXED_OVER_TIME, name);
}

function theme() {
  return {
    text: variable("--text"), quiet: variable("--quiet"), line: variable("--line"),
    back: variable("--back"), heat: isDark() ? [...HEAT].reverse() : HEAT,
  };
}

const wholes = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const fewDigits = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});
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

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, size) {
  ruler.font = size + "px " + getComputedStyle(document.body).fontFamily;
  return ruler.measureText(text).width;
}

const LEGEND = {line: 22, mark: 18, gap: 12};

// All names, over as many lines as they take; whoever shows it keeps that much room.
function legend(look, names) {
  return {
    type: "plain", top: 0, left: 0, right: 0, data: names, icon: "roundRect", padding: [4, 0],
    itemWidth: LEGEND.mark, itemHeight: 12, itemGap: LEGEND.gap,
    textStyle: {color: look.text, fontSize: 12, lineHeight: LEGEND.line - LEGEND.gap},
    inactiveColor: look.quiet,
  };
}

function legendHeight(names, width) {
  let lines = 1, taken = 0;
  for (const name of names) {
    const item = LEGEND.mark + 8 + textWidth(name, 12);
    if (taken > 0 && taken + item > width) {
      lines += 1;
      taken = 0;
    }
    taken += item + LEGEND.gap;
  }
  return 10 + lines * (LEGEND.line + 4);
}

// The next number with one digit, or half of it, that people count by.
function roundedUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * unit).find((one) => one >= value);
}

// Lines at most so wide, broken at blanks and after commas, never inside a word.
function wrapped(text, width, size) {
  const lines = [];
  for (const word of text.split(/(?<=[,/])|(?<= )/)) {
    const longer = (lines[lines.length - 1] ?? "") + word;
    if (lines.length > 0 && textWidth(longer.trimEnd(), size) <= width)
      lines[lines.length - 1] = longer;
    else
      lines.push(word);
  }
  return lines.map((line) => line.trimEnd());
}
