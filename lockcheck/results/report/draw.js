// Draws the lanes and the overview. Everything is painted anew: ten thousand marks take a few ms.

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const FONT = { lane: `600 13px ${FAMILY}`, small: `12px ${FAMILY}`, bar: `600 12px ${FAMILY}` };
const COLOUR_NAMES = ['page', 'panel', 'ink', 'quiet', 'line', 'soft', 'bad', 'overlap',
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

function draw() {
  canvas.style.height = `${layout.height}px`;
  pen = prepare(canvas, layout.width, layout.height);
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, layout.width, layout.height);
  drawLanes();
  pen.save();
  pen.beginPath();
  pen.rect(layout.gutter, 0, plotWidth(), layout.height);
  pen.clip();
  drawAxis();
  data.faults.forEach(drawFault);
  data.stalls.forEach(drawStall);
  drawOverlaps();
  drawTries();
  for (let i = 0; i < data.holds.lane.length; i++) drawHold(i);
  drawOverlapBars();
  drawMarks();
  drawCursor();
  pen.restore();
  drawOverview();
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
    pen.fillText(lane.name, 14, top + height / 2, layout.gutter - 20);
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

// The part of [start, end] that is in view, at least a pixel wide; null if there is none.
function stretch(start, end) {
  if (end < view.from || start > view.to) return null;
  const left = Math.max(layout.gutter - 4, toX(start));
  return { left, width: Math.max(1.2, Math.min(layout.width + 4, toX(end)) - left) };
}

function band(lane, start, end, label, style) {
  const part = stretch(start, end);
  if (!part) return;
  const top = layout.tops[lane] + 1, height = layout.heights[lane] - 1;
  pen.fillStyle = style.fill;
  pen.fillRect(part.left, top, part.width, height);
  pen.fillStyle = style.edge;
  if (!style.dashed) pen.fillRect(part.left, top, part.width, 2);
  else {
    pen.strokeStyle = style.edge;
    pen.setLineDash([5, 4]);
    pen.strokeRect(part.left + 0.5, top + 1.5, part.width - 1, height - 3);
    pen.setLineDash([]);
  }
  pen.font = FONT.small;
  pen.textBaseline = 'middle';
  pen.fillStyle = style.ink;
  if (pen.measureText(label).width + 8 < part.width) pen.fillText(label, part.left + 5, top + 10);
}

function drawFault(fault) {
  const end = fault.healed < 0 ? data.end : fault.healed;
  const style = { edge: colours['fault-edge'], ink: colours['fault-ink'] };
  if (fault.proven < 0) {
    const label = `${fault.name}, unproven`;
    band(fault.lane, fault.start, end, label, { ...style, fill: 'transparent', dashed: true });
    return;
  }
  band(fault.lane, fault.start, end, fault.name, { ...style, fill: colours.fault });
  const x = toX(fault.proven);
  pen.fillStyle = colours['fault-edge'];
  pen.fillRect(x, layout.tops[fault.lane] + 1, 1, layout.heights[fault.lane] - 1);
}

function drawStall(stall) {
  const ink = colours['stall-edge'];
  band(stall.lane, stall.start, stall.end, 'machine stalled',
    { fill: colours.stall, edge: ink, ink: colours.quiet });
  const part = stretch(stall.start, stall.end);
  if (!part || part.width < 14) return;
  pen.fillStyle = ink;
  const top = layout.tops[stall.lane];
  for (let x = part.left + 6; x < part.left + part.width - 2; x += 12) {
    for (let y = top + 24; y < top + layout.heights[stall.lane] - 4; y += 10) {
      pen.fillRect(x + (y / 10 & 1) * 6, y, 1.5, 1.5);
    }
  }
}

function drawOverlaps() {
  const { key, start, end, counts } = data.overlaps;
  pen.fillStyle = colours.overlap;
  for (let i = 0; i < key.length; i++) {
    const part = wanted(key[i]) && stretch(start[i], end[i]);
    if (!part) continue;
    pen.globalAlpha = counts[i] ? 1 : 0.5;
    pen.fillRect(part.left, AXIS - 6, part.width, layout.height);
  }
  pen.globalAlpha = 1;
}

function drawOverlapBars() {
  const { key, first, second, start, end } = data.overlaps;
  pen.fillStyle = colours['overlap-bar'];
  for (let i = 0; i < key.length; i++) {
    const part = wanted(key[i]) && stretch(start[i], end[i]);
    if (!part) continue;
    pen.fillRect(part.left, AXIS - 6, part.width, 4);
    for (const lane of [first[i], second[i]]) {
      const y = layout.tops[lane] + LANE.fault + data.lanes[lane].rows * LANE.row - 3;
      pen.fillRect(part.left, y, part.width, 4);
    }
  }
}

const barTop = (hold) =>
  layout.tops[data.holds.lane[hold]] + LANE.fault + data.holds.row[hold] * LANE.row + 1;

function drawHold(i) {
  const { key, asked, start, end, until, gone, token } = data.holds;
  if (!wanted(key[i]) || gone[i] < view.from || asked[i] > view.to) return;
  const top = barTop(i), height = LANE.row - 5, colour = keyColour(key[i]);
  const leaseEnd = until[i] < 0 ? end[i] : Math.min(end[i], Math.max(start[i], until[i]));
  pen.fillStyle = colour;
  pen.globalAlpha = 0.45;
  const maybe = stretch(asked[i], gone[i]);
  pen.fillRect(maybe.left, top + height / 2 - 1, maybe.width, 2);
  pen.globalAlpha = 1;
  const solid = stretch(start[i], leaseEnd);
  if (solid) {
    pen.beginPath();
    pen.roundRect(solid.left, top, solid.width, height, Math.min(3, solid.width / 2));
    pen.fill();
  }
  if (leaseEnd < end[i]) drawOutlived(stretch(leaseEnd, end[i]), top, height, colour);
  if (until[i] >= 0 && until[i] < end[i]) drawLeaseEnd(toX(until[i]), top, height);
  const label = data.keys[key[i]] + (token[i] < 0 ? '' : `  token ${token[i]}`);
  if (solid) barLabel(label, solid, top + height / 2 + 0.5);
}

function drawOutlived(part, top, height, colour) {
  if (!part) return;
  pen.fillStyle = colours.panel;
  pen.fillRect(part.left, top, part.width, height);
  pen.fillStyle = hatch(colour);
  pen.fillRect(part.left, top, part.width, height);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2;
  pen.strokeRect(part.left, top + 0.6, part.width, height - 1.2);
}

function drawLeaseEnd(x, top, height) {
  pen.fillStyle = colours.ink;
  pen.fillRect(x - 0.8, top - 5, 1.8, height + 10);
  pen.beginPath();
  pen.moveTo(x, top - 6); pen.lineTo(x + 8, top - 6); pen.lineTo(x + 5, top - 3);
  pen.lineTo(x + 8, top); pen.lineTo(x, top);
  pen.fill();
}

function barLabel(label, part, y) {
  const left = Math.max(part.left, layout.gutter) + 6;
  pen.font = FONT.bar;
  if (pen.measureText(label).width + 8 > part.left + part.width - left) return;
  pen.fillStyle = colours['on-key'];
  pen.textBaseline = 'middle';
  pen.fillText(label, left, y);
}

function drawTries() {
  const { lane, key, start } = data.tries;
  pen.fillStyle = colours.quiet;
  pen.globalAlpha = 0.4;
  const last = {};
  for (let i = 0; i < lane.length; i++) {
    if (!wanted(key[i]) || start[i] < view.from || start[i] > view.to) continue;
    const x = Math.round(toX(start[i]));
    if (last[lane[i]] === x) continue;
    last[lane[i]] = x;
    pen.fillRect(x, layout.tops[lane[i]] + layout.heights[lane[i]] - 4, 1, 3);
  }
  pen.globalAlpha = 1;
}

const markTime = (i) => (data.marks.end[i] < 0 ? data.marks.start[i] : data.marks.end[i]);
const markY = (lane) => layout.tops[lane] + layout.heights[lane] - LANE.marks / 2 - 1;

// Marks of the same sort that fall on the same pixel are painted once; the stale ones come on top.
function drawMarks() {
  const { lane, key, state } = data.marks;
  const late = [], last = {};
  for (let i = 0; i < lane.length; i++) {
    const time = markTime(i);
    if (!wanted(key[i]) || time < view.from || time > view.to) continue;
    const x = toX(time);
    if (state[i] === STALE || state[i] === REFUSED) { late.push([i, x]); continue; }
    const slot = lane[i] * 8 + state[i];
    if (Math.abs(last[slot] - x) < 0.7) continue;
    last[slot] = x;
    drawMark(state[i], x, markY(lane[i]));
  }
  for (const [i, x] of late) drawMark(state[i], x, markY(lane[i]));
}

function drawMark(state, x, y) {
  pen.lineWidth = 2;
  pen.beginPath();
  if (state === READ) {
    pen.fillStyle = colours.read;
    pen.fillRect(x - 0.75, y - 5, 1.5, 10);
  } else if (state === ACCEPTED) {
    pen.arc(x, y, 4.6, 0, 7);
    pen.fillStyle = colours.accepted;
    pen.fill();
    pen.lineWidth = 1;
    pen.strokeStyle = colours.panel;
    pen.stroke();
  } else if (state === STALE) {
    pen.moveTo(x, y - 9); pen.lineTo(x + 9, y); pen.lineTo(x, y + 9); pen.lineTo(x - 9, y);
    pen.closePath();
    pen.fillStyle = colours['overlap-bar'];
    pen.strokeStyle = colours.panel;
    pen.fill();
    pen.stroke();
  } else if (state === REFUSED) {
    pen.rect(x - 5.5, y - 5.5, 11, 11);
    pen.fillStyle = colours.panel;
    pen.fill();
    pen.moveTo(x - 3, y - 3); pen.lineTo(x + 3, y + 3);
    pen.moveTo(x + 3, y - 3); pen.lineTo(x - 3, y + 3);
    pen.strokeStyle = colours.refused;
    pen.stroke();
  } else {
    pen.setLineDash([2.5, 2]);
    pen.arc(x, y, 4.5, 0, 7);
    pen.strokeStyle = colours.unknown;
    pen.stroke();
    pen.setLineDash([]);
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
  for (const fault of data.faults) {
    const end = fault.healed < 0 ? data.end : fault.healed;
    ink.fillStyle = colours.fault;
    ink.fillRect(at(fault.start), 0, Math.max(1, at(end) - at(fault.start)), height);
  }
  const { lane, key, start, end } = data.holds;
  ink.globalAlpha = 0.7;
  for (let i = 0; i < lane.length; i++) {
    if (!wanted(key[i])) continue;
    ink.fillStyle = keyColour(key[i]);
    ink.fillRect(at(start[i]), 6 + lane[i] * each, Math.max(0.8, at(end[i]) - at(start[i])), each - 1);
  }
  ink.globalAlpha = 1;
  ink.fillStyle = colours['overlap-bar'];
  for (const finding of data.findings) {
    if (finding.effect === 'violation') ink.fillRect(at((finding.from + finding.to) / 2) - 1, 0, 2.5, height);
  }
  const left = at(view.from), right = at(view.to);
  ink.fillStyle = colours.panel;
  ink.globalAlpha = 0.62;
  ink.fillRect(0, 0, left, height);
  ink.fillRect(right, 0, width - right, height);
  ink.globalAlpha = 1;
  ink.strokeStyle = colours.link;
  ink.lineWidth = 2;
  ink.strokeRect(left + 1, 1, Math.max(4, right - left - 2), height - 2);
}

let queued = 0;
function redraw() {
  if (!queued) queued = requestAnimationFrame(() => { queued = 0; draw(); });
}
