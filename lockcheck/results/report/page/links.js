// Links to an incident, to one of its steps, and to an operation: #incident-3, #step-3-2, #op-512.

function follow() {
  const [, operation] = /^#op-(\d{1,15})$/.exec(location.hash) || [];
  if (operation) return showOperation(Number(operation));
  const [, number, step] = /^#(?:incident|step)-(\d+)(-\d+)?$/.exec(location.hash) || [];
  const story = number && byId(`incident-${number}`);
  if (!story) return;
  story.open = true;
  const link = step && document.querySelector(`#step-${number}${step} a`);
  show(Number(number) - 1, link ? Number(link.dataset.at) : undefined);
  (link || story).scrollIntoView();
}

// Replaces the address, so that what is looked at can be linked to, and the page stays where it is.
function addressed(hash) { history.replaceState(null, '', hash); }

// Where an operation is drawn: its lane, its height in it, from when to when, and its details.
function placeOf(number) {
  const { marks, holds, tries, evidence } = data;
  let i = marks.op.indexOf(number);
  if (i >= 0) {
    return { lane: marks.lane[i], key: marks.key[i], kind: kindOf(marks.state[i]), at: markTime(i),
      from: marks.start[i], to: markTime(i), y: () => heightOf(i), lines: aboutMark(i) };
  }
  i = holds.op.indexOf(number);
  const released = i < 0;
  if (released) i = holds.release.indexOf(number);
  if (i >= 0) {
    return { lane: holds.lane[i], key: holds.key[i], kind: 'holds',
      at: released ? holds.end[i] : holds.start[i], from: holds.asked[i], to: holds.gone[i],
      y: () => barTop(i) + LANE.row / 2, lines: aboutHold(i) };
  }
  i = evidence.op.indexOf(number);
  if (i >= 0) {
    const end = evidence.end[i] < 0 ? evidence.start[i] : evidence.end[i];
    return { lane: evidence.lane[i], key: evidence.key[i], kind: '', at: evidence.start[i],
      from: evidence.start[i], to: end, y: () => evidenceTop(evidence.lane[i]), lines: aboutEvidence(i) };
  }
  i = tries.op.indexOf(number);
  if (i < 0) return null;
  return { lane: tries.lane[i], key: tries.key[i], kind: 'attempts', at: tries.start[i],
    from: tries.start[i], to: tries.start[i],
    y: () => layout.tops[tries.lane[i]] + layout.heights[tries.lane[i]] - 4, lines: aboutTry(i) };
}

const CLOSE_US = 20_000; // shown at least, on both sides of an operation

function showOperation(number) {
  byId('timeline').scrollIntoView();
  hideTip();
  const place = placeOf(number), name = number.toLocaleString('en');
  if (!place) {
    const all = data.operations;
    view.cursor = -1;
    redraw();
    return label(number > 0 && number <= all
      ? [[`Operation ${name} is not drawn here`, false], ['; it is in the stored history.', true]]
      : [[`There is no operation ${name}`, false], [`: the history has ${all.toLocaleString('en')}.`, true]]);
  }
  reveal(place);
  const room = Math.max(CLOSE_US, place.to - place.from);
  cancelAnimationFrame(gliding);
  view.cursor = place.at;
  look(place.at - room, place.at + room);
  label([[`Operation ${name}  `, true], [place.lines[0], false]]);
  showTip({ x: toX(place.at), y: place.y() }, place.lines);
}
