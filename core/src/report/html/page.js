'use strict';
const filter = document.getElementById('filter');
if (filter) {
  const shown = document.getElementById('shown');
  const findings = [...document.querySelectorAll('article.finding, #in-short li[id]')];
  const texts = findings.map((finding) => finding.textContent.toLowerCase());
  const read = () => {
    const hash = location.hash.slice(1);
    const asked = hash.startsWith('q=') ? hash.slice(2) : '';
    try { filter.value = decodeURIComponent(asked); } catch { filter.value = ''; }
    show();
    // A cell of a map leads to a finding that the filter may have hidden
    if (asked) document.getElementById('findings').scrollIntoView();
    if (hash && !asked) document.getElementById(hash)?.scrollIntoView();
  };
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    findings.forEach((finding, at) => {
      const fits = words.every((word) => texts[at].includes(word));
      finding.hidden = !fits;
      count += fits;
    });
    shown.textContent = words.length ? count + ' of ' + findings.length : '';
  };
  filter.addEventListener('input', () => {
    show();
    history.replaceState(null, '', filter.value ? '#q=' + encodeURIComponent(filter.value) : '#');
  });
  addEventListener('hashchange', read);
  document.querySelector('.filter').hidden = false;
  read();
}
