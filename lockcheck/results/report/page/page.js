// Ties the page together: findings, filter, copy buttons, themes, printing.

function label(parts) {
  byId('finding-label').replaceChildren(...parts.map(([text, quiet]) => {
    const piece = document.createElement('span');
    piece.textContent = text;
    if (quiet) piece.className = 'quiet';
    return piece;
  }));
}

function nameFinding() {
  const all = data.findings.length;
  byId('previous').disabled = view.finding <= 0;
  byId('next').disabled = view.finding >= all - 1;
  if (!all) return label([['No incident. ', false], ['The whole run is shown.', true]]);
  if (view.finding < 0) return label([[`${all} incident${all > 1 ? 's' : ''} `, false], ['in this run', true]]);
  const { at, key } = data.findings[view.finding];
  const on = data.keys[key] && ` on ${data.keys[key]}`;
  label([[`Incident ${view.finding + 1} of ${all}  `, true], [`began at ${moment(at)}${on}`, false]]);
}

function show(number, at) {
  const finding = data.findings[number];
  if (!finding) return;
  view.finding = number;
  view.cursor = at === undefined ? -1 : at;
  choose({
    key: wanted(finding.key) ? view.key : -1,
    lane: finding.lanes.includes(view.lane) ? view.lane : -1,
  });
  nameFinding();
  if (at === undefined) return glide(finding.from, finding.to);
  const quarter = (finding.to - finding.from) / 4;
  glide(at - quarter, at + quarter);
}

function step(by) {
  if (!data.findings.length) return;
  show(Math.max(0, Math.min(data.findings.length - 1, view.finding + by)));
}

function whole() {
  view.finding = -1;
  view.cursor = -1;
  nameFinding();
  glide(WHOLE.from, WHOLE.to);
}

function wireTools() {
  byId('previous').addEventListener('click', () => step(-1));
  byId('next').addEventListener('click', () => step(1));
  byId('zoom-in').addEventListener('click', () => zoom(0.6));
  byId('zoom-out').addEventListener('click', () => zoom(1 / 0.6));
  byId('whole').addEventListener('click', whole);
  byId('unfold').addEventListener('click', () => choose({ unfolded: !view.unfolded }));
  for (const link of document.querySelectorAll('a[data-finding]')) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const { finding, at } = link.dataset;
      show(Number(finding), at === undefined ? undefined : Number(at));
      addressed(link.hash);
      byId('timeline').scrollIntoView();
      canvas.focus({ preventScroll: true });
    });
  }
}

function options(select, names) {
  ['all', ...names].forEach((name, index) => {
    const option = document.createElement('option');
    option.value = String(index - 1);
    option.textContent = name;
    select.append(option);
  });
}

// Lanes of clients come first, so that a client's number is its lane's.
const CLIENTS = data.lanes.filter((lane) => lane.client).map((lane) => lane.name);

function wireFilters() {
  const lists = [['key', data.keys], ['lane', CLIENTS]].filter(([, names]) => names.length > 1);
  for (const [what, names] of lists) {
    const select = byId(what);
    options(select, names);
    select.addEventListener('change', () => choose({ [what]: Number(select.value) }));
    byId(`${what}-filter`).hidden = false;
  }
  if (KINDS.length < 2) return;
  for (const [kind, name] of KINDS) {
    const button = document.createElement('button');
    button.type = 'button';
    button.id = `kind-${kind}`;
    button.textContent = name;
    button.setAttribute('aria-pressed', 'true');
    button.addEventListener('click', () => choose({ off: { ...view.off, [kind]: !view.off[kind] } }));
    byId('kinds').append(button);
  }
  byId('kinds').hidden = false;
}

// Changes what is drawn, and has the tools show it.
function choose(changes) {
  Object.assign(view, changes);
  byId('key').value = String(view.key);
  byId('lane').value = String(view.lane);
  for (const button of byId('kinds').children) {
    button.setAttribute('aria-pressed', String(!view.off[button.id.slice('kind-'.length)]));
  }
  nameFolding();
  hideTip();
  measure();
  redraw();
}

// Undoes the filters that would hide it.
function reveal({ lane, key, kind }) {
  const folded = lane >= data.unfolded && data.lanes[lane].client;
  choose({
    key: wanted(key) ? view.key : -1,
    lane: view.lane === lane ? lane : -1,
    off: { ...view.off, [kind]: false },
    unfolded: view.unfolded || folded,
  });
}

function nameFolding() {
  const rest = CLIENTS.length - data.unfolded, button = byId('unfold');
  button.hidden = rest <= 0 || view.lane >= 0;
  button.textContent = view.unfolded ? 'Fewer clients' : `${rest} more clients`;
}

async function copy(text, button) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard for a page opened from a disk: select it the old way
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = name; }, 1600);
}

function wireCopying() {
  for (const box of document.querySelectorAll('.command')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', () => copy(box.querySelector('code').textContent, button));
    box.append(button);
  }
  const ticket = byId('ticket');
  ticket.addEventListener('click', () => copy(ticket.dataset.text, ticket));
}

function wireThemesAndPaper() {
  const repaint = () => { readColours(); draw(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  let closed = [], moved = [];
  addEventListener('beforeprint', () => {
    document.documentElement.classList.add('printing');
    moved = [...document.querySelectorAll('.verdict details.how')].map((fold) => [fold, fold.nextSibling]);
    for (const [fold] of moved) byId(fold.dataset.onPaper).append(fold); // page 1 has no room for it
    closed = [...document.querySelectorAll('details.how:not([open]), details.fold:not([open])')];
    for (const fold of closed) fold.open = true; // incidents stay as they are: they may be many
    repaint();
  });
  addEventListener('afterprint', () => {
    document.documentElement.classList.remove('printing');
    for (const [fold, next] of moved.reverse()) next.parentNode.insertBefore(fold, next);
    for (const fold of closed) fold.open = false;
    repaint();
  });
  new ResizeObserver(() => {
    if (canvas.clientWidth !== layout.width) { measure(); redraw(); }
  }).observe(canvas);
}

function leftOut() {
  const parts = [[data.omitted, 'operations'], [data.hidden, 'clients']].filter(([many]) => many);
  const named = parts.map(([many, what]) => `${many.toLocaleString('en')} ${what}`).join(' and ');
  return named && ` Not drawn, for their number: ${named}.`;
}

const root = document.documentElement;
try {
  root.dataset.ready = '1'; // shows the timeline's place: it must have a width to be measured
  readColours();
  wireTools();
  wireFilters();
  nameFolding();
  wireCopying();
  wireThemesAndPaper();
  byId('omitted').textContent = leftOut();
  measure();
  if (data.findings.length) {
    view.finding = 0;
    look(data.findings[0].from, data.findings[0].to);
  }
  nameFinding();
  draw();
  follow();
  addEventListener('hashchange', follow);
  root.dataset.lanes = String(data.lanes.length);
  root.dataset.holds = String(data.holds.lane.length);
} catch (error) { // the words of the page do not depend on the picture
  delete root.dataset.ready;
  root.dataset.error = String(error);
}
