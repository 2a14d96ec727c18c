// Paints what happens at a moment: attempts, reads and writes.

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
    if (layout.heights[lane[i]]) count('attempts');
    pen.fillRect(x, layout.tops[lane[i]] + layout.heights[lane[i]] - 4, 1, 3);
  }
  pen.globalAlpha = 1;
}

const markTime = (i) => (data.marks.end[i] < 0 ? data.marks.start[i] : data.marks.end[i]);
const barY = (lane) => layout.tops[lane] + LANE.fault + LANE.row / 2 - 1.5;
const markY = (lane) => layout.tops[lane] + layout.heights[lane] - LANE.marks / 2 - 1
  - (data.lanes[lane].evidence ? LANE.evidence : 0);

// What was done to the lock stands on its bar, what was done to the data below it.
const heightOf = (i) => (data.marks.state[i] === TOOK ? barY : markY)(data.marks.lane[i]);

// Marks of the same sort that fall on the same pixel are painted once; the stale ones come on top.
function drawMarks() {
  const { lane, key, state } = data.marks;
  const late = [], last = {};
  for (let i = 0; i < lane.length; i++) {
    const time = markTime(i);
    if (!wanted(key[i]) || !shows(kindOf(state[i])) || time < view.from || time > view.to) continue;
    const x = toX(time);
    if (layout.heights[lane[i]]) count(kindOf(state[i]));
    if (state[i] !== READ && state[i] !== ACCEPTED && state[i] !== UNKNOWN) { late.push([i, x]); continue; }
    const slot = lane[i] * 9 + state[i];
    if (Math.abs(last[slot] - x) < 0.7) continue;
    last[slot] = x;
    drawWindow(i);
    drawMark(state[i], x, markY(lane[i]));
  }
  for (const [i] of late) if (state[i] !== TOOK) drawWindow(i);
  for (const [i, x] of late) drawMark(state[i], x, heightOf(i));
}

// Somewhere between its sending and its answer an operation took effect.
function drawWindow(i) {
  const { lane, state, start, end } = data.marks;
  const part = end[i] < 0 ? null : stretch(start[i], end[i]);
  if (!part || part.width < 8) return;
  pen.fillStyle = state[i] === READ ? colours.read : colours.accepted;
  pen.globalAlpha = 0.45;
  pen.fillRect(part.left, markY(lane[i]) - 1, part.width, 2);
  pen.globalAlpha = 1;
}

const evidenceTop = (lane) => layout.tops[lane] + layout.heights[lane] - LANE.evidence + 2;

function drawEvidence() {
  const { lane, key, start, end, text } = data.evidence;
  const free = {}; // up to where a lane's row is painted: what lies below something else has no label
  for (let i = 0; i < lane.length; i++) {
    const part = wanted(key[i]) && stretch(start[i], end[i] < 0 ? data.end : end[i]);
    if (!part) continue;
    const top = evidenceTop(lane[i]), height = LANE.evidence - 7;
    pen.fillStyle = colours['bad-soft'];
    pen.strokeStyle = colours['overlap-bar'];
    pen.lineWidth = 1.4;
    pen.setLineDash(end[i] < 0 ? [4, 3] : []);
    pen.beginPath();
    pen.roundRect(part.left, top, Math.max(3, part.width), height, 3);
    pen.fill();
    pen.stroke();
    pen.setLineDash([]);
    const next = nextOnLane(i);
    if (part.left >= (free[lane[i]] ?? -1)) evidenceLabel(data.texts[text[i]], part, top, height, next);
    free[lane[i]] = part.left + part.width;
  }
}

function nextOnLane(i) {
  const { lane, key, start } = data.evidence;
  for (let j = i + 1; j < lane.length; j++) {
    if (lane[j] === lane[i] && wanted(key[j])) return toX(start[j]);
  }
  return layout.width;
}

// Inside where it fits, else behind, where nothing else follows too soon.
function evidenceLabel(label, part, top, height, next) {
  pen.font = FONT.small;
  pen.textBaseline = 'middle';
  pen.fillStyle = colours.ink;
  const width = pen.measureText(label).width;
  const inside = Math.max(part.left, layout.gutter) + 5;
  const behind = part.left + part.width + 5;
  if (inside + width + 4 < part.left + part.width) pen.fillText(label, inside, top + height / 2 + 0.5);
  else if (behind + width < Math.min(next, layout.width)) {
    pen.fillText(label, behind, top + height / 2 + 0.5);
  }
}

function drawMark(state, x, y) {
  pen.lineWidth = 2;
  pen.beginPath();
  if (state === READ) {
    pen.fillStyle = colours.read; // taller than the mark of the write that follows it
    pen.fillRect(Math.round(x) - 1, y - 6.5, 2, 13);
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
  } else if (state === OVERWROTE || state === UNAWARES) {
    pen.moveTo(x, y - 8); pen.lineTo(x + 8, y + 6); pen.lineTo(x - 8, y + 6);
    pen.closePath();
    pen.fillStyle = colours[state === OVERWROTE ? 'overlap-bar' : 'panel'];
    pen.strokeStyle = colours[state === OVERWROTE ? 'panel' : 'overlap-bar'];
    pen.fill();
    pen.stroke();
  } else if (state === TOOK) {
    pen.moveTo(x - 6, y - 6); pen.lineTo(x + 6, y + 6);
    pen.moveTo(x + 6, y - 6); pen.lineTo(x - 6, y + 6);
    pen.strokeStyle = colours['overlap-bar'];
    pen.lineWidth = 3;
    pen.stroke();
  } else if (state === LOST) {
    pen.arc(x, y, 4.6, 0, 7);
    pen.fillStyle = colours.panel;
    pen.fill();
    pen.lineWidth = 1.6;
    pen.moveTo(x - 3.3, y + 3.3); pen.lineTo(x + 3.3, y - 3.3);
    pen.strokeStyle = colours['overlap-bar'];
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
