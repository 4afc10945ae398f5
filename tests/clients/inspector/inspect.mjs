// The Inspector's command line, carried out once for each call in one process: to start it takes far longer than
// what it does. Each call is its own client, which connects anew.
//
// Standard input holds one JSON document: the words of each command line, and how long each may take in
// milliseconds. Standard output gets another: what each has printed, on standard output or as an error.

import { text } from "node:stream/consumers";

import { handleError, runCli } from "./node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";

const { lines, patience } = JSON.parse(await text(process.stdin));

// What is printed meanwhile, instead of being written.
let printed = "";
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write = (chunk, ...rest) => {
  printed += chunk;
  rest.at(-1)?.();
  return true;
};
process.exit = () => {};

const late = () =>
  new Promise((_, fail) => setTimeout(() => fail(new Error(`nothing came for ${patience} ms`)), patience).unref());

const outcomes = [];
for (const words of lines) {
  printed = "";
  try {
    await Promise.race([runCli([...process.argv.slice(0, 2), ...words]), late()]);
  } catch (error) {
    printed = "";
    await handleError(error);
  }
  outcomes.push(JSON.parse(printed));
}
write(JSON.stringify(outcomes));
