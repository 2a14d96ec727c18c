// Labels of what an incident is about, the weightiest first: who got the lock too early, or still
// believed to hold it, the fault behind it, what was damaged. None is cut at an edge or covers another.

const FLAG = 17; // height
const RANK = ['early', 'after', 'harm', 'refused', 'granted', 'lease'];
const MANY = 10; // other incidents have one label each, if they are not more than these
let taken = []; // the boxes of all labels so far
let flags = [];

const free = (box) => !taken.some((other) => box.left < other.right + 4 && other.left < box.right + 4
  && box.top < other.bottom && other.top < box.bottom);
const within = (box) => box.left > layout.gutter && box.right < layout.width - 2;
const boxAt = (left, y, width) => ({ left, right: left + width, top: y - FLAG / 2, bottom: y + FLAG / 2 });

function widthOf(text) {
  pen.font = FONT.small;
  return pen.measureText(text).width + 10;
}

// Where nothing else is written, it is from now on.
function claim(box) {
  if (!free(box)) return false;
  taken.push(box);
  return true;
}

const chosen = () => data.findings[view.finding];
const blamed = () => (chosen() && chosen().fault >= 0 ? data.faults[chosen().fault] : null);

function placeFlags() {
  taken = [];
  flags = [];
  const ranked = (finding) => finding.flags.filter((flag) => drawable(flag, finding))
    .sort((a, b) => RANK.indexOf(a.kind) - RANK.indexOf(b.kind));
  const [first, ...rest] = chosen() ? ranked(chosen()) : [];
  if (first) placeFlag(first, true);
  if (blamed() && shows('faults')) blamed().lanes.forEach((lane) => placeFault(blamed(), lane));
  rest.forEach((flag) => placeFlag(flag));
  const others = data.findings.filter((finding) => finding !== chosen()).map((finding) => ranked(finding)[0])
    .filter(Boolean);
  if (others.length <= MANY) others.forEach((flag) => placeFlag(flag));
}

const ofData = (flag) => flag.kind === 'refused' || flag.kind === 'harm';

function drawable(flag, finding) {
  return layout.heights[flag.lane] && wanted(finding.key) && shows(ofData(flag) ? 'writes' : 'holds')
    && flag.at >= view.from && flag.at <= view.to;
}

// Above the bar, or beside the mark; `anyhow` even where it does not begin at its moment.
function placeFlag(flag, anyhow) {
  const x = toX(flag.at), width = widthOf(flag.text);
  const above = layout.tops[flag.lane] + 10, beside = markY(flag.lane);
  const boxes = [];
  for (const y of ofData(flag) ? [beside, above] : [above, beside]) {
    const apart = y === above || !ofData(flag) ? 0 : 11;
    boxes.push(boxAt(x + apart, y, width), boxAt(x - apart - width, y, width));
  }
  const clear = boxes.filter((box) => within(box) && free(box));
  let box = clear.find((each) => !covers(each, flag)) || clear[0];
  if (!box && anyhow) {
    box = boxAt(Math.max(layout.gutter + 2, Math.min(x, layout.width - 4 - width)), above, width);
  }
  if (!box) return;
  taken.push(box);
  flags.push({ ...flag, x, box, pole: box.top < above || !ofData(flag) });
}

// Whether there are marks where it would be.
function covers(box, flag) {
  const { lane, key } = data.marks;
  return lane.some((other, i) => {
    if (other !== flag.lane || !wanted(key[i]) || Math.abs(heightOf(i) - (box.top + box.bottom) / 2) > 10) return false;
    const x = toX(markTime(i));
    return x > box.left - 6 && x < box.right + 6;
  });
}

// The fault that is blamed: its label stays in view, at an edge where the fault itself is not.
function placeFault(fault, lane) {
  if (!layout.heights[lane]) return;
  const before = fault.since < view.from, after = fault.since > view.to;
  const at = `${fault.upon}, at ${moment(fault.since)}`;
  const words = before ? [`◂ ${at}`, `◂ ${fault.upon}`] : after ? [`${at} ▸`, `${fault.upon} ▸`] : [fault.upon];
  const y = layout.tops[lane] + 11, end = fault.healed < 0 ? data.end : fault.healed;
  for (const text of words) {
    const width = widthOf(text);
    const wish = before ? layout.gutter + 6 : after ? layout.width - width - 8 : Math.max(layout.gutter + 2, toX(fault.since));
    const beside = taken.flatMap((box) => [box.right + 5, box.left - 5 - width]);
    const boxes = [wish, Math.min(wish, layout.width - 4 - width), ...beside].map((left) => boxAt(left, y, width));
    const box = boxes.find((each) => within(each) && free(each));
    if (!box) continue;
    taken.push(box);
    flags.push({ kind: 'fault', text, lane, box, edge: end < view.from ? layout.gutter : after ? layout.width - 6 : -1 });
    return;
  }
}

function drawFlags() {
  pen.font = FONT.small;
  pen.textBaseline = 'middle';
  for (const flag of flags) {
    const { box, kind, text, lane } = flag;
    if (kind === 'fault') drawEdge(flag);
    const bad = kind === 'early' || kind === 'after' || kind === 'harm';
    const ink = colours[kind === 'fault' ? 'fault-ink' : bad ? 'bad' : kind === 'refused' ? 'refused' : 'ink'];
    pen.globalAlpha = kind === 'fault' ? 0.75 : 1;
    pen.fillStyle = colours[bad ? 'bad-soft' : 'panel'];
    pen.beginPath();
    pen.roundRect(box.left, box.top, box.right - box.left, FLAG, 3);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = pen.strokeStyle = ink;
    pen.lineWidth = 1;
    if (kind !== 'fault') pen.stroke();
    const bar = layout.tops[lane] + LANE.fault + LANE.row - 4;
    if (flag.pole) pen.fillRect(flag.x - 0.75, Math.min(bar, box.top), 1.5, Math.abs(bar - box.top));
    pen.fillText(text, box.left + 5, (box.top + box.bottom) / 2 + 0.5);
  }
}

// A stub of a band that lies outside.
function drawEdge({ lane, edge }) {
  if (edge < 0) return;
  pen.fillStyle = colours['fault-edge'];
  pen.fillRect(edge, layout.tops[lane] + 1, 6, layout.heights[lane] - 1);
}
