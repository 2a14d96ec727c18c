// The list works without it: this filters while one types, and keeps the list up to date.
const form = document.getElementById('filter');
if (!form) return;
const EVERY_MS = 2000;
const TYPING_MS = 200;
const count = document.getElementById('count');
let asked = 0;
let typing = 0;
let shown = document.getElementById('list').innerHTML;

const address = () => {
  const fields = [...new FormData(form)].filter(([name, value]) => value && (name !== 'sort' || value !== '-time'));
  const query = new URLSearchParams(fields).toString();
  return query ? `/?${query}` : '/';
};

const same = (element) => (other) =>
  other.tagName === element.tagName && other.getAttribute('href') === element.getAttribute('href') &&
  other.value === element.value && other.className === element.className;

function replaceList(fresh) {
  if (fresh.innerHTML === shown) return;
  shown = fresh.innerHTML;
  const list = document.getElementById('list');
  const ticked = new Set([...list.querySelectorAll('input:checked')].map((box) => box.value));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const left = list.querySelector('.scroll') ? list.querySelector('.scroll').scrollLeft : 0;
  list.replaceChildren(...fresh.childNodes);
  for (const box of list.querySelectorAll('input')) box.checked = ticked.has(box.value);
  if (list.querySelector('.scroll')) list.querySelector('.scroll').scrollLeft = left;
  const again = focused && [...list.querySelectorAll('a, input, button, .scroll')].find(same(focused));
  if (again) again.focus({ preventScroll: true });
  ready();
}

async function show(where) {
  const mine = ++asked;
  let text = '';
  try {
    const answer = await fetch(where, { redirect: 'error' });
    if (!answer.ok) throw new Error(answer.statusText);
    text = await answer.text();
  } catch {
    if (mine === asked) say('lockcheck serve does not answer: this list is of before.', true);
    return;
  }
  if (mine !== asked) return;
  const page = new DOMParser().parseFromString(text, 'text/html');
  replaceList(page.getElementById('list'));
  say(page.getElementById('count').textContent, false);
}

function say(text, lost) {
  count.classList.toggle('lost', lost);
  if (count.textContent !== text) count.textContent = text;
}

function filter() {
  clearTimeout(typing);
  history.replaceState(null, '', address());
  show(address());
}

function ready() {
  const boxes = [...document.querySelectorAll('#list input')];
  const button = document.getElementById('compare');
  if (button) button.disabled = boxes.filter((box) => box.checked).length !== 2;
}

form.addEventListener('submit', (event) => { event.preventDefault(); filter(); });
form.addEventListener('change', filter);
form.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(filter, TYPING_MS); });
document.getElementById('list').addEventListener('change', ready);
setInterval(() => { if (!document.hidden) show(location.pathname + location.search); }, EVERY_MS);
ready();
