// Looks at pages of runs in Chromium; ci/page/run makes them.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import puppeteer from 'puppeteer-core';
import { compare } from './approved.mjs';

const [folder, seen, approve, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
// Without hinting letters are as wide on one machine as on another
const args = ['--no-sandbox', '--hide-scrollbars', '--font-render-hinting=none'];
const browser = await puppeteer.launch({ executablePath, args });
const wrong = [];
let rules = 0;
const url = (name) => `file://${folder}/${name}/report.html`;

// What is on the console, and what is loaded beside the page itself
async function open(name, hash = '', script = true, bypass = false) {
  const page = await browser.newPage();
  page.on('console', (message) => wrong.push(`${name}: console: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`${name}: ${error}`));
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== url(name)) wrong.push(`${name}: loads ${request.url()}`);
  });
  await page.setJavaScriptEnabled(script);
  // The policy of the page lets nothing in, not even what tests it
  await page.setBypassCSP(bypass);
  const begun = performance.now();
  await page.goto(url(name) + hash, { waitUntil: 'load' });
  return { page, took: performance.now() - begun };
}

// Nothing scrolls sideways but what is meant to
async function fits(page, name, width) {
  const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth));
  if (wide > width) wrong.push(`${name}: ${wide} wide where there are ${width}`);
}

for (const name of ['healthy', 'broken', 'few', 'hostile', 'fixture', 'trend']) {
  for (const scheme of ['light', 'dark']) {
    for (const width of [400, 900, 1400]) {
      const { page } = await open(name, '', true, true);
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await page.evaluate(axe);
      const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
      rules = Math.max(rules, passes.length);
      for (const { id, nodes } of violations) {
        wrong.push(`${name}, ${scheme}, ${width}: ${id}: ${nodes.length} times, as ${nodes[0].html}`);
      }
      await fits(page, name, width);
      // No script but the page's own runs, not even where no policy forbids it
      const ran = await page.evaluate(() => globalThis.hacked);
      if (ran !== undefined) wrong.push(`${name}: a script that is not the page's own runs`);
      await page.close();
    }
  }
  // Everything is there without scripts
  const { page: silent } = await open(name, '', false);
  const without = await silent.$$eval('article, table, details', (found) => found.length);
  await silent.close();
  const { page } = await open(name);
  const articles = await page.$$eval('article, table, details', (found) => found.length);
  if (without !== articles) wrong.push(`${name}: ${without} of ${articles}`);
  await page.close();
}

// The hostile text is there, and its script is text
const { page: hostile } = await open('hostile');
const texts = await hostile.evaluate(() => document.body.innerText);
if (!texts.includes('<script>globalThis.hacked = true</script>')) wrong.push('hostile: no script is shown as text');
await hostile.close();

for (const name of ['healthy', 'broken']) {
  for (const width of [500, 900, 1400]) {
    const { page } = await open(name, '', true, true);
    const difference = await compare(page, name, width, seen, approve);
    if (difference) wrong.push(difference);
    await fits(page, name, width);
    await page.close();
  }
}

// The filter is in the address, both ways
const visible = (page) => page.$$eval('article.finding', (all) => all.filter((one) => !one.hidden).length);
const { page } = await open('broken', '#q=nodeport');
const [all, some] = [await page.$$eval('article.finding', (found) => found.length), await visible(page)];
await page.type('#filter', ' external');
const fewer = await visible(page);
const address = await page.evaluate(() => location.hash);
if (!(fewer > 0 && fewer < some && some < all)) wrong.push(`filter: ${fewer}, ${some} of ${all}`);
if (address !== '#q=nodeport%20external') wrong.push(`filter: ${address}`);
// A cell of a map leads to a finding that the filter has hidden
await page.evaluate(() => { location.hash = document.querySelector('.map td.doubt a').getAttribute('href'); });
await page.waitForFunction(() => document.querySelector(':target')?.checkVisibility());
if (await visible(page) !== all) wrong.push('filter: it stays where an anchor is asked for');
await page.close();

// The best of three each
const best = async (name) => {
  const times = [];
  for (let time = 0; time < 3; time += 1) {
    const { page: opened, took } = await open(name);
    times.push(took);
    await opened.close();
  }
  return Math.min(...times);
};
const [few, many] = [await best('few'), await best('many')];
console.log(`axe-core: ${rules} rules hold`);
console.log(`few checks open in ${few.toFixed(0)} ms, many in ${many.toFixed(0)} ms`);
if (many > few + 1000) wrong.push('many checks take too long');

if (pictures) {
  for (const [name, height] of [['healthy', 900], ['broken', 900]]) {
    const { page: opened } = await open(name);
    await opened.setViewport({ width: 1100, height });
    await opened.screenshot({ path: `${pictures}/page-${name}.png` });
    await opened.close();
    // The terminal's bold and colours, as a terminal on a dark ground has them
    const said = readFileSync(`${folder}/${name}.ansi`, 'utf8').replaceAll('\r', '');
    const escaped = said.replace(/[&<>]/g, (one) => `&#${one.codePointAt(0)};`);
    const coloured = escaped.replace(/\x1b\[([0-9;]*)m/g, (_, codes) => (
      codes === '0' ? '</span>' : `<span class="${codes.split(';').map((code) => `c${code}`).join(' ')}">`));
    const terminal = await browser.newPage();
    await terminal.setContent(`<style>pre { display: inline-block; margin: 0; padding: 16px; background: #1e1e1e;
      color: #ddd; font: 14px/1.35 monospace } .c1 { font-weight: bold } .c31 { color: #ff7b72 } .c32 { color: #7ee787 }
      .c33 { color: #f2cc60 }</style><pre>${coloured}</pre>`);
    await (await terminal.$('pre')).screenshot({ path: `${pictures}/terminal-${name}.png` });
    await terminal.close();
  }
}
await browser.close();
for (const what of new Set(wrong)) console.log(`not ok: ${what}`);
console.log(wrong.length ? 'page: not ok' : 'page: ok');
process.exitCode = wrong.length ? 1 : 0;
