// Wheel, fingers, mouse and keys on the timeline, and the details of what they point at.

const tip = byId('tip');
const fingers = new Map();
let clicked = false; // after a click on the timeline the wheel alone zooms, until it loses focus
let travelled = 0;

function place(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

canvas.addEventListener('wheel', (event) => {
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways || event.shiftKey) {
    event.preventDefault();
    move(sideways ? event.deltaX : event.deltaY);
  } else if (event.ctrlKey || event.metaKey || clicked) {
    event.preventDefault();
    const pixels = event.deltaMode ? event.deltaY * 16 : event.deltaY;
    zoom(Math.exp(Math.max(-60, Math.min(60, pixels)) * (event.ctrlKey ? 0.012 : 0.004)), place(event).x);
  }
}, { passive: false });

canvas.addEventListener('pointerdown', (event) => {
  cancelAnimationFrame(gliding);
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, place(event));
  travelled = 0;
  clicked = true;
});

canvas.addEventListener('pointermove', (event) => {
  const before = fingers.get(event.pointerId);
  const now = place(event);
  if (!before) {
    if (event.pointerType === 'mouse') point(now);
    return;
  }
  travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
  if (fingers.size === 2) pinch(event.pointerId, before, now);
  else if (travelled > 4) { hideTip(); move(before.x - now.x); }
  fingers.set(event.pointerId, now);
});

function pinch(id, before, now) {
  const [other] = [...fingers].filter(([finger]) => finger !== id).map(([, where]) => where);
  const apart = (a) => Math.max(12, Math.abs(a.x - other.x));
  hideTip();
  zoom(apart(before) / apart(now), (now.x + other.x) / 2);
  move((before.x - now.x) / 2);
}

canvas.addEventListener('pointerup', (event) => {
  const tapped = fingers.size === 1 && travelled <= 4;
  fingers.delete(event.pointerId);
  const found = tapped && point(place(event), event.pointerType === 'mouse' ? 0 : 8);
  if (found && found.op > 0) addressed(`#op-${found.op}`);
});
canvas.addEventListener('pointercancel', (event) => fingers.delete(event.pointerId));
canvas.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse') hideTip(); });
canvas.addEventListener('blur', () => { clicked = false; hideTip(); });
canvas.addEventListener('dblclick', (event) => zoom(0.4, place(event).x));

const KEYS = {
  ArrowLeft: () => move(-plotWidth() / 6), ArrowRight: () => move(plotWidth() / 6),
  '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), _: () => zoom(1 / 0.6),
  0: () => glide(WHOLE.from, WHOLE.to), Home: () => look(WHOLE.from, WHOLE.from + view.to - view.from),
  End: () => look(WHOLE.to - view.to + view.from, WHOLE.to),
  n: () => step(1), p: () => step(-1), Escape: () => { hideTip(); view.cursor = -1; redraw(); },
};
canvas.addEventListener('keydown', (event) => {
  const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});

function steer(event) {
  const box = overview.getBoundingClientRect();
  const middle = WHOLE.from + (event.clientX - box.left) / box.width * (WHOLE.to - WHOLE.from);
  const half = (view.to - view.from) / 2;
  look(middle - half, middle + half);
}
overview.addEventListener('pointerdown', (event) => {
  cancelAnimationFrame(gliding);
  overview.setPointerCapture(event.pointerId);
  steer(event);
});
overview.addEventListener('pointermove', (event) => { if (event.buttons) steer(event); });

// --- what lies under the pointer

function point(where, reach = 0) {
  const lane = layout.tops.findIndex((top, i) => where.y >= top && where.y < top + layout.heights[i]);
  const found = lane < 0 || where.x < layout.gutter ? null
    : evidenceAt(where, lane, 4 + reach) || markAt(where, lane, 7 + reach)
      || holdAt(where, lane, 3 + reach / 2) || tryAt(where, lane, 3 + reach) || bandAt(where, lane);
  if (found) showTip(where, found.lines); else hideTip();
  return found;
}

function markAt(where, lane, reach) {
  const { lane: lanes, key, state } = data.marks;
  let best = -1, nearest = reach;
  for (let i = 0; i < lanes.length; i++) {
    if (lanes[i] !== lane || !wanted(key[i]) || !shows(kindOf(state[i]))) continue;
    if (Math.abs(where.y - heightOf(i)) > reach + 4) continue;
    const distance = Math.abs(toX(markTime(i)) - where.x) + (state[i] === READ ? 1 : 0)
      - (state[i] === READ || state[i] === ACCEPTED ? 0 : 2);
    if (distance < nearest) { nearest = distance; best = i; }
  }
  return best < 0 ? null : { lines: aboutMark(best), op: data.marks.op[best] };
}

function evidenceAt(where, lane, reach) {
  if (!data.lanes[lane].evidence || where.y < evidenceTop(lane) - 2) return null;
  const { lane: lanes, key, op, start, end } = data.evidence;
  for (let i = lanes.length - 1; i >= 0; i--) {
    if (lanes[i] !== lane || !wanted(key[i])) continue;
    const until = toX(end[i] < 0 ? data.end : end[i]);
    if (where.x < toX(start[i]) - reach || where.x > until + reach) continue;
    return { lines: aboutEvidence(i), op: op[i] };
  }
  return null;
}

function holdAt(where, lane, reach) {
  const { lane: lanes, key, op, asked, gone } = data.holds;
  for (let i = shows('holds') ? lanes.length - 1 : -1; i >= 0; i--) {
    if (lanes[i] !== lane || !wanted(key[i])) continue;
    const top = barTop(i);
    if (where.y < top - reach || where.y > top + LANE.row + reach) continue;
    if (where.x >= toX(asked[i]) - reach && where.x <= toX(gone[i]) + reach) {
      return { lines: aboutHold(i), op: op[i] };
    }
  }
  return null;
}

function tryAt(where, lane, reach) {
  const { lane: lanes, key, op, start } = data.tries;
  if (!shows('attempts') || where.y < layout.tops[lane] + layout.heights[lane] - 6 - reach) return null;
  const i = lanes.findIndex((other, n) => other === lane && wanted(key[n])
    && Math.abs(toX(start[n]) - where.x) <= reach);
  return i < 0 ? null : { lines: aboutTry(i), op: op[i] };
}

function bandAt(where, lane) {
  const time = toTime(where.x);
  const stall = data.stalls.find((s) => s.lane === lane && s.start <= time && time <= s.end);
  if (stall) {
    return { lines: ['The machine stalled', `${data.lanes[lane].name} did not run for ${stall.long}`,
      `from ${moment(stall.start)} to ${moment(stall.end)}`] };
  }
  const fault = shows('faults') && data.faults.find((f) => f.lanes.includes(lane) && f.since <= time
    && (f.healed < 0 || time <= f.healed));
  return fault ? { lines: aboutFault(fault) } : null;
}

function aboutFault(fault) {
  const healed = fault.healed < 0 ? 'never seen to be healed' : `healed at ${moment(fault.healed)}`;
  const proof = fault.proven < 0 ? 'not confirmed' : `confirmed ${span(fault.proven - fault.start)} later`;
  const worked = fault.since > fault.start ? `in effect ${span(fault.since - fault.start)} later, ` : '';
  const begun = `begun at ${moment(fault.start)}, ${worked}${proof}`;
  const title = `Injected: ${fault.title}${fault.when && `, ${fault.when}`}`;
  const cut = fault.apart ? [`cut off: ${fault.apart}`] : [];
  const idle = fault.felt ? [] : ['made no difference: no client waited meanwhile for what it struck'];
  return [title, ...cut, begun, healed, fault.proof, ...idle];
}

const numbered = (op) => (op > 0 ? `operation ${op}` : '');

function aboutEvidence(i) {
  const { lane, op, start, end, text, finding } = data.evidence;
  const took = end[i] < 0 ? 'no answer' : `answered after ${span(end[i] - start[i])}`;
  return [data.texts[text[i]], `${data.lanes[lane[i]].name}, sent at ${moment(start[i])}, ${took}`,
    `evidence of incident ${finding[i] + 1}`, numbered(op[i])];
}

function aboutTry(i) {
  const { lane, key, op, start } = data.tries;
  const title = `${data.lanes[lane[i]].name} asked for ${data.keys[key[i]]} in vain`;
  return [title, `sent at ${moment(start[i])}`, numbered(op[i])];
}

function aboutHold(i) {
  const { op, release, lane, key, asked, start, end, until, token, shared, how } = data.holds;
  const over = until[i] >= 0 && end[i] > until[i];
  return [
    `${data.lanes[lane[i]].name} ${shared[i] ? 'shares' : 'holds'} ${data.keys[key[i]]}${token[i] < 0 ? '' : `, token ${token[i]}`}`,
    `asked at ${moment(asked[i])}, granted after ${span(start[i] - asked[i])}`,
    `held ${span(end[i] - start[i])}, until ${moment(end[i])} (${data.endings[how[i]]})`,
    until[i] < 0 ? 'a lock without a lease' : `lease promised until ${moment(until[i])}`,
    over ? `believed ${span(end[i] - until[i])} longer than promised` : '',
    numbered(op[i]) + (release[i] > 0 ? `, released by ${numbered(release[i])}` : ''),
  ];
}

const DONE = ['done', 'did not happen', 'done', 'unknown whether it happened'];
const STATES = ['accepted', 'refused by the storage', 'accepted although late', 'outcome unknown', '',
  'accepted; it overwrote another client\'s unseen', 'accepted, and lost later',
  'accepted; it overwrote another client\'s unseen, without being at fault', 'it took the lock away from its holder'];

function aboutMark(i) {
  return [...whatMark(i), numbered(data.marks.op[i])];
}

function whatMark(i) {
  const { lane, key, state, start, end, number, value, base, token, why, call } = data.marks;
  const node = data.lanes[lane[i]].name, lock = data.keys[key[i]];
  const took = end[i] < 0 ? 'no answer' : `answered after ${span(end[i] - start[i])}`;
  const which = number[i] < 0 ? '' : ` as write ${number[i].toLocaleString('en')}`;
  const sent = `sent at ${moment(start[i])}, ${took}`;
  if (state[i] === READ) {
    return [`${node} read ${lock}`.trim(), `found ${textOf(value[i]) || 'nothing'}`, sent, textOf(why[i])];
  }
  if (state[i] === TOOK) return [`${node} released ${lock}, no longer its own`, STATES[TOOK], sent, textOf(why[i])];
  if (call[i] >= 0) {
    return [`${node}: ${textOf(call[i])}`, DONE[state[i]], sent, textOf(why[i])];
  }
  const title = `${state[i] === STALE ? 'Late: ' : ''}${node} wrote ${textOf(value[i])}`;
  return [title, STATES[state[i]].replace(/^accepted/, `accepted${which}`), base[i] < 0 ? '' : `based on ${textOf(base[i])}`,
    token[i] < 0 ? '' : `with token ${token[i]}`, lock ? `${lock}, ${sent}` : sent, textOf(why[i])];
}

function showTip(where, [title, ...lines]) {
  const heading = document.createElement('b');
  heading.textContent = title;
  heading.classList.toggle('bad', title.startsWith('Late'));
  const others = lines.filter(Boolean).map((line) => {
    const row = document.createElement('div');
    row.textContent = line;
    return row;
  });
  tip.replaceChildren(heading, ...others);
  tip.hidden = false;
  const left = Math.min(where.x + 14, layout.width - tip.offsetWidth - 8);
  const below = where.y + 18;
  const top = below + tip.offsetHeight > layout.height ? where.y - tip.offsetHeight - 14 : below;
  tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(4, top)}px)`;
}

function hideTip() { tip.hidden = true; }
