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
  if (!wanted(finding.key)) { view.key = -1; byId('key').value = '-1'; }
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
  for (const link of document.querySelectorAll('a[data-finding]')) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const { finding, at } = link.dataset;
      show(Number(finding), at === undefined ? undefined : Number(at));
      byId('timeline').scrollIntoView();
      canvas.focus({ preventScroll: true });
    });
  }
}

function wireFilter() {
  if (data.keys.length < 2) return;
  const select = byId('key');
  ['all', ...data.keys].forEach((name, index) => {
    const option = document.createElement('option');
    option.value = String(index - 1);
    option.textContent = name;
    select.append(option);
  });
  select.addEventListener('change', () => { view.key = Number(select.value); redraw(); });
  byId('key-filter').hidden = false;
}

function wireFolding() {
  const rest = data.lanes.filter((lane, number) => lane.client && number >= data.unfolded).length;
  if (!rest) return;
  const button = byId('unfold');
  const name = () => { button.textContent = view.unfolded ? 'Fewer clients' : `${rest} more clients`; };
  button.addEventListener('click', () => { view.unfolded = !view.unfolded; name(); measure(); redraw(); });
  button.hidden = false;
  name();
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
  let closed = [];
  addEventListener('beforeprint', () => {
    document.documentElement.classList.add('printing');
    closed = [...document.querySelectorAll('details:not([open])')];
    for (const story of closed) story.open = true;
    repaint();
  });
  addEventListener('afterprint', () => {
    document.documentElement.classList.remove('printing');
    for (const story of closed) story.open = false;
    repaint();
  });
  new ResizeObserver(() => {
    if (canvas.clientWidth !== layout.width) { measure(); redraw(); }
  }).observe(canvas);
}

// A link to an incident, or to one of its steps.
function follow() {
  const [, number, step] = /^#(?:incident|step)-(\d+)(-\d+)?$/.exec(location.hash) || [];
  const story = number && byId(`incident-${number}`);
  if (!story) return;
  story.open = true;
  const link = step && document.querySelector(`#step-${number}${step} a`);
  show(Number(number) - 1, link ? Number(link.dataset.at) : undefined);
  (link || story).scrollIntoView();
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
  wireFilter();
  wireFolding();
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
