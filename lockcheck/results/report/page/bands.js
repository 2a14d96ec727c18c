// Paints what lasts: faults, stalls, holds, and the times in which two held the same lock.

// The part of [start, end] that is in view, at least a pixel wide; null if there is none.
function stretch(start, end, least = 1.2) {
  if (end < view.from || start > view.to) return null;
  const left = Math.max(layout.gutter - 4, toX(start));
  return { left, width: Math.max(least, Math.min(layout.width + 4, toX(end)) - left) };
}

// Of the labels the first that fits up to `until`, a place on the screen, is shown.
function band(lane, start, end, labels, style, until = toX(end)) {
  const part = stretch(start, end);
  if (!part || !layout.heights[lane]) return;
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
  const room = Math.min(until, layout.width) - part.left - 8;
  const label = labels.find((words) => pen.measureText(words).width < room);
  if (label && claim(boxAt(part.left, top + 10, widthOf(label)))) pen.fillText(label, part.left + 5, top + 10);
}

// From the last to the first: the label of a short one may go on behind it, up to the next one.
function drawFaults() {
  const next = {};
  for (let i = data.faults.length - 1; i >= 0; i--) drawFault(data.faults[i], next);
}

function drawFault(fault, next) {
  const end = fault.healed < 0 ? data.end : fault.healed;
  const style = { edge: colours['fault-edge'], ink: colours['fault-ink'] };
  if (stretch(fault.since, end) && fault.lanes.some((lane) => layout.heights[lane])) count('faults');
  for (const lane of fault.lanes) {
    const until = next[lane] ?? layout.width;
    next[lane] = toX(fault.since);
    if (fault.proven < 0) {
      const labels = fault === blamed() ? [] : [`${fault.upon}, not confirmed`, fault.upon];
      band(lane, fault.since, end, labels, { ...style, fill: 'transparent', dashed: true }, until);
      continue;
    }
    const labels = fault === blamed() ? []
      : [...(fault.felt ? [] : [`${fault.upon}, made no difference`]), fault.upon];
    band(lane, fault.since, end, labels, { ...style, fill: colours.fault }, until);
    pen.fillStyle = colours['fault-edge'];
    pen.fillRect(toX(fault.proven), layout.tops[lane] + 1, 1, layout.heights[lane] - 1);
  }
}

// All faults are healed by then, no other follows, and every lock has to be granted again.
function drawQuiet() {
  if (data.quiet < 0 || data.quiet < view.from || data.quiet > view.to) return;
  const x = Math.round(toX(data.quiet)) + 0.5, label = 'no more faults →';
  pen.strokeStyle = colours['fault-edge'];
  pen.setLineDash([2, 3]);
  pen.beginPath();
  pen.moveTo(x, AXIS - 6);
  pen.lineTo(x, layout.height);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = FONT.small;
  pen.fillStyle = colours['fault-ink'];
  const width = pen.measureText(label).width;
  const left = x + 4 + width + 4 < layout.width ? x + 4 : x - 4 - width;
  pen.textBaseline = 'middle';
  pen.fillText(label, left, layout.height - FOOT / 2);
}

function drawStall(stall) {
  const ink = colours['stall-edge'];
  band(stall.lane, stall.start, stall.end, ['machine stalled'],
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

const CLOSE = 8; // overlaps that are so near each other are shaded as one

const overlapsWith = (i) => wanted(data.overlaps.key[i])
  && (drawnOn(data.overlaps.first[i]) || drawnOn(data.overlaps.second[i]));

// Only violations have bands: what does no harm is quieter than who held the lock.
function drawOverlaps() {
  const { key, start, end, counts } = data.overlaps; // in the order of their starts
  let band = null;
  const paint = () => { if (band) pen.fillRect(band.left, AXIS - 6, band.right - band.left, layout.height); };
  pen.fillStyle = colours.overlap;
  for (let i = 0; i < key.length; i++) {
    const part = counts[i] && overlapsWith(i) && stretch(start[i], end[i]);
    if (!part) continue;
    const right = part.left + part.width;
    if (band && part.left - band.right < CLOSE) band.right = Math.max(band.right, right);
    else { paint(); band = { left: part.left, right }; }
  }
  paint();
}

function drawOverlapBars() {
  const { key, first, second, start, end, counts } = data.overlaps;
  const covered = {}; // up to where, by colour and lanes
  for (let i = 0; i < key.length; i++) {
    pen.fillStyle = colours[counts[i] ? 'overlap-bar' : 'stall-edge'];
    const part = overlapsWith(i) && stretch(start[i], end[i]);
    if (!part) continue;
    const right = part.left + part.width, row = `${counts[i]} ${first[i]} ${second[i]}`;
    if (right - covered[row] < 0.5) continue;
    covered[row] = right;
    pen.fillRect(part.left, AXIS - 6, part.width, counts[i] ? 4 : 2);
    for (const lane of counts[i] ? [first[i], second[i]] : []) {
      const y = layout.tops[lane] + LANE.fault + data.lanes[lane].rows * LANE.row - 3;
      pen.fillRect(part.left, y, part.width, 4);
    }
  }
}

const barTop = (hold) =>
  layout.tops[data.holds.lane[hold]] + LANE.fault + data.holds.row[hold] * LANE.row + 1;

let painted = {}; // by row of a lane, where the last hold was painted that is but a stroke

function drawHolds() {
  painted = {};
  for (let i = 0; i < data.holds.lane.length; i++) drawHold(i);
}

// Of those that are but a stroke on the same pixel one is painted.
function drawStroke(i, top, height) {
  const { lane, row, key, asked } = data.holds;
  const x = Math.round(toX(asked[i])), slot = lane[i] * 8 + row[i];
  if (painted[slot] === x) return;
  painted[slot] = x;
  pen.fillStyle = keyColour(key[i]);
  pen.fillRect(x, top, 2, height);
}

function drawHold(i) {
  const { lane, key, asked, start, end, until, gone, token, shared } = data.holds;
  if (!wanted(key[i]) || gone[i] < view.from || asked[i] > view.to) return;
  if (!layout.heights[lane[i]]) return;
  count('holds');
  const full = LANE.row - 5, height = shared[i] ? full / 2 : full;
  const top = barTop(i) + (full - height) / 2, colour = keyColour(key[i]);
  const leaseEnd = until[i] < 0 ? end[i] : Math.min(end[i], Math.max(start[i], until[i]));
  if (toX(gone[i]) - toX(asked[i]) < 2) return drawStroke(i, top, height);
  pen.fillStyle = colour;
  pen.globalAlpha = 0.45;
  const maybe = stretch(asked[i], gone[i]);
  pen.fillRect(maybe.left, top + height / 2 - 1, maybe.width, 2);
  pen.globalAlpha = 1;
  const solid = stretch(start[i], leaseEnd, 2);
  if (solid) {
    pen.fillStyle = colours.panel; // a gap before it, however close the last one is
    pen.fillRect(solid.left - 1, top, 1, height);
    pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(solid.left, top, solid.width, height, Math.min(3, solid.width / 2));
    pen.fill();
  }
  if (leaseEnd < end[i]) drawOutlived(stretch(leaseEnd, end[i]), top, height, colour);
  if (until[i] >= 0 && until[i] < end[i]) drawLeaseEnd(toX(until[i]), top, height);
  const label = data.keys[key[i]] + (token[i] < 0 ? '' : `  token ${token[i]}`);
  if (solid && !shared[i]) barLabel(label, solid, top + height / 2 + 0.5);
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
  if (part.left + part.width - left < 16) return; // not even for one letter: no need to measure
  pen.font = FONT.bar;
  if (pen.measureText(label).width + 8 > part.left + part.width - left) return;
  pen.fillStyle = colours['on-key'];
  pen.textBaseline = 'middle';
  pen.fillText(label, left, y);
}
