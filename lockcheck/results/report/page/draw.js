// Draws lanes, axis and overview; bands.js and marks.js what lies on the lanes. Everything is painted
// anew each time: ten thousand marks take a few ms.

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const FONT = { lane: `600 13px ${FAMILY}`, small: `12px ${FAMILY}`, bar: `600 12px ${FAMILY}` };
const COLOUR_NAMES = ['page', 'panel', 'ink', 'quiet', 'line', 'soft', 'bad', 'bad-soft', 'overlap',
  'overlap-bar', 'fault', 'fault-edge', 'fault-ink', 'stall', 'stall-edge', 'accepted', 'refused',
  'unknown', 'read', 'key-1', 'key-2', 'key-3', 'key-4', 'key-5', 'key-6', 'on-key', 'link'];
let colours = {};
let hatches = {};
let pen = canvas.getContext('2d');

function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries(
    COLOUR_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  hatches = {};
}

const keyColour = (key) => colours[`key-${key % 6 + 1}`];

function hatch(colour) {
  if (!hatches[colour]) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const ink = tile.getContext('2d');
    ink.strokeStyle = colour;
    ink.lineWidth = 1.8;
    ink.beginPath();
    for (const shift of [-8, 0, 8]) { ink.moveTo(shift - 1, 9); ink.lineTo(shift + 9, -1); }
    ink.stroke();
    hatches[colour] = pen.createPattern(tile, 'repeat');
  }
  return hatches[colour];
}

function prepare(target, width, height) {
  const ratio = window.devicePixelRatio || 1;
  target.width = Math.round(width * ratio);
  target.height = Math.round(height * ratio);
  const ink = target.getContext('2d');
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ink;
}

let drawn = {}; // how many of each kind are in view
const count = (kind) => { drawn[kind] = (drawn[kind] || 0) + 1; };

function draw() {
  drawn = {};
  canvas.style.height = `${layout.height}px`;
  pen = prepare(canvas, layout.width, layout.height);
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, layout.width, layout.height);
  placeFlags();
  drawLanes();
  pen.save();
  pen.beginPath();
  pen.rect(layout.gutter, 0, plotWidth(), layout.height);
  pen.clip();
  drawAxis();
  if (shows('faults')) { drawFaults(); drawQuiet(); }
  data.stalls.forEach(drawStall);
  if (shows('holds')) drawOverlaps();
  if (shows('attempts')) drawTries();
  if (shows('holds')) {
    drawHolds();
    drawOverlapBars();
  }
  drawMarks();
  drawEvidence();
  drawFlags();
  drawCursor();
  pen.restore();
  drawOverview();
  Object.assign(document.documentElement.dataset,
    { from: Math.round(view.from), to: Math.round(view.to), drawn: JSON.stringify(drawn),
      labels: JSON.stringify(flags.map(({ kind, text, box }) => ({ kind, text, ...box }))) });
}

// As much of a text as there is room for.
function cut(text, room) {
  let long = text.length;
  while (long > 1 && pen.measureText(text.slice(0, long) + (long < text.length ? '…' : '')).width > room) long--;
  return long < text.length ? `${text.slice(0, long)}…` : text;
}

function drawLanes() {
  data.lanes.forEach((lane, number) => {
    const top = layout.tops[number], height = layout.heights[number];
    pen.fillStyle = number % 2 ? colours.panel : colours.soft;
    pen.globalAlpha = 0.55;
    pen.fillRect(0, top, layout.width, height);
    pen.globalAlpha = 1;
    pen.fillStyle = lane.client ? colours.ink : colours.quiet;
    pen.font = FONT.lane;
    pen.textBaseline = 'middle';
    pen.fillText(cut(lane.name, layout.gutter - 20), 14, top + height / 2);
    pen.fillStyle = colours.line;
    pen.fillRect(0, top, layout.width, 1);
  });
  pen.fillRect(layout.gutter - 1, 0, 1, layout.height);
}

function tickStep() {
  const least = (view.to - view.from) / plotWidth() * (layout.width < 500 ? 68 : 96);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

function drawAxis() {
  const step = tickStep();
  const digits = Math.min(6, Math.max(0, 6 - Math.floor(Math.log10(step) + 1e-9)));
  pen.font = FONT.small;
  pen.textBaseline = 'middle';
  for (let time = Math.ceil(Math.max(0, view.from) / step) * step; time <= view.to; time += step) {
    const x = Math.round(toX(time));
    pen.fillStyle = colours.line;
    pen.fillRect(x, AXIS - 6, 1, layout.height);
    pen.fillStyle = colours.quiet;
    const text = `${(time / 1e6).toFixed(digits)} s`;
    if (x + 6 + pen.measureText(text).width < layout.width) pen.fillText(text, x + 4, AXIS / 2 + 1);
  }
}

function drawCursor() {
  if (view.cursor < 0) return;
  pen.strokeStyle = colours.link;
  pen.lineWidth = 1.5;
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(toX(view.cursor), AXIS - 8);
  pen.lineTo(toX(view.cursor), layout.height);
  pen.stroke();
  pen.setLineDash([]);
}

function drawOverview() {
  const width = overview.clientWidth || 600, height = 40;
  const ink = prepare(overview, width, height);
  const at = (time) => (time - WHOLE.from) / (WHOLE.to - WHOLE.from) * width;
  ink.fillStyle = colours.soft;
  ink.fillRect(0, 0, width, height);
  const each = Math.min(6, (height - 12) / Math.max(1, data.lanes.length));
  for (const fault of shows('faults') ? data.faults : []) {
    const end = fault.healed < 0 ? data.end : fault.healed;
    ink.fillStyle = colours.fault;
    ink.fillRect(at(fault.since), 0, Math.max(1, at(end) - at(fault.since)), height);
  }
  const { lane, key, start, end } = data.holds;
  const last = {}; // where something was painted last on a lane
  ink.globalAlpha = 0.7;
  for (let i = 0; i < lane.length; i++) {
    if (!wanted(key[i]) || !drawnOn(lane[i]) || !shows('holds')) continue;
    const x = at(start[i]), width = at(end[i]) - x;
    if (width < 1 && Math.abs(last[lane[i]] - x) < 0.8) continue;
    last[lane[i]] = x;
    ink.fillStyle = keyColour(key[i]);
    ink.fillRect(x, 6 + lane[i] * each, Math.max(0.8, width), each - 1);
  }
  if (!lane.length) drawMarksOfAll(ink, at, each);
  ink.globalAlpha = 1;
  const left = at(view.from), right = at(view.to);
  ink.fillStyle = colours.panel;
  ink.globalAlpha = 0.45;
  ink.fillRect(0, 0, left, height);
  ink.fillRect(right, 0, width - right, height);
  ink.globalAlpha = 1;
  for (const finding of data.findings) {
    ink.fillStyle = colours[finding.effect === 'violation' ? 'overlap-bar' : 'stall-edge'];
    ink.fillRect(at(finding.at) - 1, 0, 2.5, height);
  }
  ink.strokeStyle = colours.link;
  ink.lineWidth = 2;
  ink.strokeRect(left + 1, 1, Math.max(4, right - left - 2), height - 2);
}

// Without holds there would be nothing to find one's way by.
function drawMarksOfAll(ink, at, each) {
  const { lane, key, start } = data.marks;
  const last = {};
  ink.fillStyle = colours.accepted;
  for (let i = 0; i < lane.length; i++) {
    const x = Math.round(at(start[i]));
    if (!wanted(key[i]) || !drawnOn(lane[i]) || last[lane[i]] === x) continue;
    last[lane[i]] = x;
    ink.fillRect(x, 6 + lane[i] * each, 1, Math.max(0.6, each - 1));
  }
}

let queued = 0;
function redraw() {
  if (!queued) queued = requestAnimationFrame(() => { queued = 0; draw(); });
}
