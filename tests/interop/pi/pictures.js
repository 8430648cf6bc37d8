// Pictures for messages.

import { crc32, deflateSync } from "node:zlib";

/** A picture of one red point. */
export const picture = {
  type: "image", mimeType: "image/png",
  data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
};

/** A picture of 40 by 40 points of noise: large enough for a store of its own in oh-my-pi. */
export const photo = { type: "image", mimeType: "image/png", data: png(40).toString("base64") };

function png(side) {
  const chunk = (kind, data) => {
    const named = Buffer.concat([Buffer.from(kind), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(named));
    return Buffer.concat([length, named, check]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const lines = Buffer.alloc(side * (1 + 3 * side));
  for (let at = 0, noise = 1; at < lines.length; at++) {
    noise = (noise * 1103515245 + 12345) % 2147483648;
    lines[at] = at % (1 + 3 * side) === 0 ? 0 : noise >> 16;
  }
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([start, chunk("IHDR", header), chunk("IDAT", deflateSync(lines)), chunk("IEND", Buffer.alloc(0))]);
}
