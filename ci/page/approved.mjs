// Compares pages with approved pictures of them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import CRC from 'pngjs/lib/crc.js';

const height = 1600;
const fonts = `body { font-family: "DejaVu Sans" } code, pre, .component { font-family: "DejaVu Sans Mono" }`;

function chunk(type, data) {
  const named = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeInt32BE(CRC.crc32(named));
  return Buffer.concat([length, named, sum]);
}

// A PNG with a palette, which pngjs reads and does not write; it is a third as large as one without
function withPalette(picture) {
  const colours = new Map();
  const rows = Buffer.alloc((picture.width + 1) * picture.height);
  for (let at = 0; at < picture.width * picture.height; at += 1) {
    const colour = picture.data.readUIntBE(4 * at, 3);
    if (!colours.has(colour)) colours.set(colour, colours.size);
    rows[at + Math.floor(at / picture.width) + 1] = colours.get(colour);
  }
  if (colours.size > 256) throw new Error(`${colours.size} colours are more than a palette has`);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  header.set([8, 3], 8);
  const palette = Buffer.alloc(3 * colours.size);
  for (const [colour, at] of colours) palette.writeUIntBE(colour, 3 * at, 3);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header), chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0)),
  ]);
}

// The upper part of a page in fixed fonts, in sixteen values of each colour
async function pictureOf(page, width) {
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await page.addStyleTag({ content: fonts });
  const picture = PNG.sync.read(Buffer.from(await page.screenshot()));
  picture.data.forEach((value, at) => { picture.data[at] = Math.round(value / 17) * 17; });
  return picture;
}

// What is wrong with a page beside its approved picture, if anything is: `approve` makes this one the approved. What
// is to be seen of it goes into the folder `seen`.
export async function compare(page, name, width, seen, approve) {
  const file = `ci/page/approved/${name}-${width}.png`;
  const picture = await pictureOf(page, width);
  if (approve) {
    mkdirSync('ci/page/approved', { recursive: true });
    writeFileSync(file, withPalette(picture));
    return undefined;
  }
  const renews = 'ci/page/run --approve renews the approved ones';
  if (!existsSync(file)) return `${file} is missing: ${renews}`;
  const before = PNG.sync.read(readFileSync(file));
  const made = `${seen}/${name}-${width}`;
  mkdirSync(seen, { recursive: true });
  writeFileSync(`${made}.png`, withPalette(picture));
  if (before.width !== width || before.height !== height) {
    return `${file} is ${before.width} by ${before.height}, ${made}.png ${width} by ${height}: ${renews}`;
  }
  const difference = new PNG({ width, height });
  // By default it takes the green of what passes for white
  const options = { threshold: 0.07 };
  const differ = pixelmatch(before.data, picture.data, difference.data, width, height, options);
  if (differ <= width * height / 100) return undefined;
  writeFileSync(`${made}-difference.png`, PNG.sync.write(difference));
  return `${file}: ${differ} of ${width * height} pixels differ, more than 1 %; the page is now ${made}.png, `
    + `the difference ${made}-difference.png; ${renews}`;
}
