// Cuts fonts down to what the page shows: node fonts.mjs < {"text", "weights", "fonts": [{"from", "to"}]}
// subset-font is HarfBuzz's own subsetter in wasm: maintained, no native code, no download.
import { readFileSync, writeFileSync } from "node:fs";
import subsetFont from "subset-font";

const { text, weights, fonts } = JSON.parse(readFileSync(0, "utf8"));
const [min, max] = weights;
for (const { from, to } of fonts) {
  const font = await subsetFont(readFileSync(from), text, {
    targetFormat: "woff2",
    variationAxes: { wght: { min, max } },
  });
  writeFileSync(to, font);
}
