// The page: unpacks the chart library, draws every chart, and keeps up with width and theme.

function read(id) {
  const text = document.getElementById(id).textContent;
  return text === "" ? null : JSON.parse(text);
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

function picker(name, choices, picked, first = 0) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  choices.forEach((choice, i) => select.add(new Option(choice, i)));
  select.value = first;
  select.addEventListener("change", () => picked(Number(select.value)));
  label.append(name, select);
  return label;
}

// How each kind is drawn: what there is to pick, its height, its option for a width.
function pictureOf(chart, controls, redraw) {
  if (chart.kind === "bars")
    return {height: (width) => barHeight(chart, width), option: (width) => barOption(chart, width)};
  if (chart.kind === "lines")
    return {height: (width) => lineHeight(chart, width), option: (width) => lineOption(chart, width)};
  if (chart.kind === "heat") {
    let layer = 0;
    if (chart.layers.length > 1)
      controls.append(picker("Shown", chart.layers.map((one) => one.name),
                             (i) => { layer = i; redraw(); }));
    return {height: (width) => heatHeight(chart, width),
            option: (width) => heatOption(chart, layer, width)};
  }
  let system = tellingSystem(chart.systems), gpu = 0;
  const gpus = () => chart.systems[system].gpus;
  if (chart.systems.length > 1)
    controls.append(picker("System", chart.systems.map((one) => one.name), (i) => {
      system = i;
      gpu = Math.min(gpu, gpus().length - 1);
      redraw();
    }, system));
  controls.append(picker("GPU", gpus().map((one) => one.name), (i) => { gpu = i; redraw(); }));
  return {height: (width) => timelineHeight(chart.systems[system], gpus()[gpu], width),
          option: (width) => timelineOption(chart.systems[system], gpus()[gpu], width)};
}

function draw(chart, number) {
  const element = document.getElementById("chart-" + number);
  const controls = element.parentElement.querySelector(".controls");
  let drawn = null;
  const redraw = () => {
    const width = element.clientWidth;
    element.style.height = picture.height(width) + "px";
    if (drawn === null) drawn = echarts.init(element);
    drawn.resize();
    // What was zoomed to stays.
    const zoom = drawn.getOption()?.dataZoom?.[0];
    drawn.setOption(picture.option(width), {notMerge: true});
    if (zoom) drawn.dispatchAction({type: "dataZoom", start: zoom.start, end: zoom.end});
  };
  const picture = pictureOf(chart, controls, redraw);
  if (chart.kind === "timeline")
    for (const [name, change] of ZOOMS)
      controls.append(button(name, () => changeZoom(drawn, change)));
  redraw();
  return redraw;
}

async function loadLibrary() {
  const packed = Uint8Array.from(atob(document.getElementById("library").textContent),
                                 (letter) => letter.charCodeAt(0));
  const text = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(text).text();
  document.head.append(script);
}

async function drawAll() {
  const charts = read("charts");
  if (charts.length === 0) return [];
  try {
    await loadLibrary();
  } catch (error) {
    for (const element of document.querySelectorAll(".chart")) {
      element.textContent = "This browser cannot unpack the charts; the tables have the numbers.";
      element.classList.add("failed");
    }
    return [];
  }
  return charts.map((chart, i) => draw(chart, i));
}

function offerData() {
  const details = document.getElementById("data");
  if (details === null) return;
  // The text itself: read and written again, numbers above 2^53 would change.
  const text = () => document.getElementById("document").textContent.replaceAll("\\u003c", "<");
  details.addEventListener("toggle", () => {
    const pre = details.querySelector("pre");
    if (details.open && pre.textContent === "") pre.textContent = text();
  });
  document.getElementById("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], {type: "application/json"}));
    link.download = "report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "Light" : "Dark";
}

async function start() {
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(wantsDark.matches);
  offerData();
  const redraws = await drawAll();
  const again = () => redraws.forEach((redraw) => redraw());
  const become = (dark) => { setTheme(dark); again(); };
  wantsDark.addEventListener("change", (event) => become(event.matches));
  document.getElementById("theme").addEventListener("click", () => become(!isDark()));
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;  // a phone's bars come and go
    width = innerWidth;
    again();
  });
  document.documentElement.dataset.state = "drawn";
}

addEventListener("DOMContentLoaded", start);
