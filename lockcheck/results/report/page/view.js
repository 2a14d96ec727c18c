// What is in view: the data, the stretch of time shown, and where a moment lies on the screen.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('timeline-data').textContent);
const canvas = byId('canvas');
const overview = byId('overview');

const WHOLE = { from: -data.end * 0.01, to: Math.max(data.end, 1000) * 1.02 };
for (const finding of data.findings) { // nearly all of the run is all of it
  if (Math.min(finding.to, data.end) - finding.from > 0.8 * data.end) Object.assign(finding, WHOLE);
}
const CLOSEST_US = 100;
const AXIS = 30, FOOT = 20; // above and below the lanes: times, and from when on all is healed
const LANE = { fault: 18, row: 24, marks: 26, evidence: 26, server: 40 };
const ACCEPTED = 0, REFUSED = 1, STALE = 2, UNKNOWN = 3, READ = 4, OVERWROTE = 5, LOST = 6, UNAWARES = 7, TOOK = 8;

const kindOf = (state) => (state === TOOK ? 'holds' : state === READ ? 'reads' : 'writes');
const anyMark = (is) => data.marks.state.some((state, i) => is(kindOf(state), i));
const othersThanWrites = anyMark((kind, i) => kind === 'writes' && data.marks.call[i] >= 0);
const KINDS = [ // what can be hidden, of what there is
  ['holds', 'Holds', data.holds.lane.length > 0],
  ['writes', othersThanWrites ? 'Operations' : 'Writes', anyMark((kind) => kind === 'writes')],
  ['reads', 'Reads', anyMark((kind) => kind === 'reads')],
  ['attempts', 'Attempts', data.tries.lane.length > 0],
  ['faults', 'Faults', data.faults.length > 0],
].filter(([, , there]) => there);

const view = { from: WHOLE.from, to: WHOLE.to, key: -1, lane: -1, off: {}, finding: -1, cursor: -1, unfolded: false };
const layout = { width: 600, height: 200, gutter: 56, tops: [], heights: [] };

function measure() {
  const pen = canvas.getContext('2d');
  pen.font = FONT.lane;
  const widest = Math.max(20, ...data.lanes.map((lane) => pen.measureText(lane.name).width));
  layout.width = canvas.clientWidth || 600;
  layout.gutter = Math.min(Math.ceil(widest) + 26, Math.max(48, layout.width * 0.22));
  let top = AXIS;
  data.lanes.forEach((lane, number) => {
    const folded = lane.client
      && (view.lane < 0 ? number >= data.unfolded && !view.unfolded : number !== view.lane);
    layout.tops[number] = folded ? -9999 : top; // out of sight, with all that is drawn in it
    if (folded) { layout.heights[number] = 0; return; }
    layout.heights[number] = !lane.client ? LANE.server
      : LANE.fault + lane.rows * LANE.row + LANE.marks + (lane.evidence ? LANE.evidence : 0);
    top += layout.heights[number];
  });
  layout.height = top + (data.quiet < 0 ? 2 : FOOT);
}

const plotWidth = () => layout.width - layout.gutter;
const toX = (time) => layout.gutter + (time - view.from) / (view.to - view.from) * plotWidth();
const toTime = (x) => view.from + (x - layout.gutter) / plotWidth() * (view.to - view.from);
const drawnOn = (lane) => view.lane < 0 || lane === view.lane || !data.lanes[lane].client;
const shows = (kind) => !view.off[kind];
const wanted = (key) => view.key < 0 || view.key === key;

function look(from, to) {
  const whole = WHOLE.to - WHOLE.from;
  const length = Math.min(whole, Math.max(CLOSEST_US, to - from));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(WHOLE.from, middle - length / 2), WHOLE.to - length);
  view.to = view.from + length;
  redraw();
}

function zoom(factor, x) {
  const fixed = toTime(x === undefined ? layout.gutter + plotWidth() / 2 : x);
  const length = view.to - view.from;
  const whole = WHOLE.to - WHOLE.from;
  const scale = Math.min(whole, Math.max(CLOSEST_US, length * factor)) / length;
  look(fixed - (fixed - view.from) * scale, fixed + (view.to - fixed) * scale);
}

function move(pixels) {
  const shift = pixels / plotWidth() * (view.to - view.from);
  look(view.from + shift, view.to + shift);
}

// Glides there, so that the eye keeps its bearings; at once for those who asked for no motion.
let gliding = 0;
function glide(from, to) {
  cancelAnimationFrame(gliding);
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return look(from, to);
  const start = { from: view.from, to: view.to, at: performance.now() };
  const step = (now) => {
    const part = Math.min(1, Math.max(0, (now - start.at) / 320));
    const eased = 1 - (1 - part) ** 3;
    look(start.from + (from - start.from) * eased, start.to + (to - start.to) * eased);
    if (part < 1) gliding = requestAnimationFrame(step);
  };
  gliding = requestAnimationFrame(step);
}

function span(us) {
  const ms = Math.abs(us) / 1e3;
  if (ms >= 999.5) return `${(ms / 1e3).toFixed(ms >= 9999.5 ? 1 : 3)} s`;
  return ms >= 0.005 ? `${ms.toFixed(ms >= 9.95 ? 0 : ms >= 0.95 ? 1 : 2)} ms` : '0 s';
}
const moment = (us) => `${(us / 1e6).toFixed(3)} s`;
const textOf = (number) => (number < 0 ? '' : data.texts[number]);
