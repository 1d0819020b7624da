// Language, theme, menu and search of the course's site.
const root = document.documentElement;
const keep = (key, value) => { try { localStorage[key] = value; } catch (e) { /* a browser without storage */ } };

// The block at the top of the window keeps its place when the language changes.
function topBlock() {
  const header = document.querySelector('header').offsetHeight;
  return [...document.querySelectorAll('.b')].find(b => b.getBoundingClientRect().bottom > header + 24);
}
function setLanguage(lang, remember) {
  const block = remember ? topBlock() : null, before = block && block.getBoundingClientRect().top;
  root.dataset.lang = lang;
  root.lang = lang === 'zh' ? 'zh' : 'en';
  for (const b of document.querySelectorAll('#language button')) b.setAttribute('aria-pressed', b.dataset.lang === lang);
  const restore = () => { if (block && window.scrollY > 0) window.scrollBy(0, block.getBoundingClientRect().top - before); };
  restore();
  requestAnimationFrame(restore);  // fonts of the other language may change heights
  if (remember) keep('lang', lang);
}
for (const b of document.querySelectorAll('#language button')) b.onclick = () => setLanguage(b.dataset.lang, true);
setLanguage(root.dataset.lang || 'en', false);

document.getElementById('theme').onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  keep('theme', root.dataset.theme);
};
document.getElementById('menu').onclick = () => document.body.classList.toggle('open');
document.getElementById('chapters').onclick = e => { if (e.target.closest('a')) document.body.classList.remove('open'); };

// A block matches if it contains every word; headings come first.
const input = document.getElementById('search'), results = document.getElementById('results');
const escaped = text => text.replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]);
function excerpt(text, words) {
  const at = Math.max(0, Math.min(...words.map(w => text.toLowerCase().indexOf(w)).filter(i => i >= 0)) - 40);
  const part = (at ? '…' : '') + text.slice(at, at + 160) + (text.length > at + 160 ? '…' : '');
  const any = new RegExp(words.map(w => escaped(w).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'gi');
  return escaped(part).replace(any, m => `<mark>${m}</mark>`);
}
function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.hidden = !words.length;
  if (!words.length) return;
  const zh = root.dataset.lang === 'zh', found = [];
  for (const [page, block, section, en, other] of searchIndex) {
    for (const text of zh ? [other, en] : [en, other]) {
      const low = text.toLowerCase();
      if (text && words.every(w => low.includes(w))) { found.push([block === section ? 0 : 1, page, block, text]); break; }
    }
  }
  found.sort((a, b) => a[0] - b[0]);
  results.innerHTML = found.slice(0, 30).map(([, page, block, text]) =>
    `<a href="${page}#b${block}"><small>${page.replace('.html', '')}</small>${excerpt(text, words)}</a>`).join('') ||
    '<p>No block contains these words. · 没有找到。</p>';
}
input.oninput = search;
input.onkeydown = e => {
  if (e.key === 'Escape') { input.value = ''; search(); }
  if (e.key === 'Enter') results.querySelector('a')?.click();
};
document.addEventListener('click', e => {
  if (e.target.closest('#results a')) { input.value = ''; results.hidden = true; }
  else if (!e.target.closest('#results, #search')) results.hidden = true;
});
