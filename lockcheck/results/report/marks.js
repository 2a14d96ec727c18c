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
