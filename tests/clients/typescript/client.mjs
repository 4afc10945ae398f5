// The script of calls, carried out by the official TypeScript client.
//
// Standard input holds one JSON document: the server's command or its URL, the folder of its
// recipes, the client's mode, the only revision that it knows if it does not know all, the calls,
// and how long each may take in milliseconds. Standard output gets another: the revision that was
// agreed upon, what came of each call, and what the client minds.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import {
  Client,
  ProtocolError,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { server, folder, mode, revision: only, calls, patience } = JSON.parse(await text(process.stdin));
const options = { timeout: patience };
const complaints = new Set(); // errors that no call has ended with
const told = new Map(); // by method, what to call with the params of the next notification
let asked = [];
let person;

const client = new Client(
  { name: "script", version: "1.0.0" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode },
    ...(only && { supportedProtocolVersions: [only] }),
  },
);
client.onerror = (error) => complaints.add(error);
client.setRequestHandler("elicitation/create", ({ params }) => {
  asked.push(params);
  return person;
});
for (const method of ["notifications/prompts/list_changed", "notifications/resources/updated"]) {
  client.setNotificationHandler(method, ({ params }) => told.get(method)?.(params ?? {}));
}

const methods = {
  "prompts/get": (params, more) => client.getPrompt(params, more),
  "prompts/list": (params, more) => client.listPrompts(params, more),
  "resources/list": (params, more) => client.listResources(params, more),
  "tools/list": (params, more) => client.listTools(params, more),
  "tools/call": (params, more) => client.callTool(params, more),
  "resources/templates/list": (params, more) => client.listResourceTemplates(params, more),
  "resources/read": (params, more) => client.readResource(params, more),
  "completion/complete": (params, more) => client.complete(params, more),
};

// Any result will do for a method that the client does not know.
const anything = { "~standard": { version: 1, vendor: "script", validate: (value) => ({ value }) } };

const ask = ({ request, params }, more) =>
  request in methods
    ? methods[request](params, { ...options, ...more })
    : client.request({ method: request, params }, anything, { ...options, ...more });

// Asked without a cursor, the client's own methods join all pages, so pages are requested one by
// one, and what the client makes of them has to be the same.
async function pages(method) {
  const found = [];
  let cursor;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const { nextCursor, ...page } = await client.request({ method, params }, options);
    found.push(page);
    cursor = nextCursor;
  } while (cursor !== undefined);
  const [key] = Object.keys(found[0]).filter((name) => Array.isArray(found[0][name]));
  const joined = (await methods[method](undefined, options))[key];
  assert.deepEqual(joined, found.flatMap((page) => page[key]));
  return { pages: found };
}

async function cancel(call) {
  const controller = new AbortController();
  const begun = ask(call.cancel, { signal: controller.signal }).then(
    () => false,
    () => controller.signal.aborted,
  );
  const result = await ask(call.once);
  controller.abort();
  return { cancelled: await begun, result };
}

async function watch({ watch: method, uri, write }) {
  const next = new Promise((notify, fail) => {
    const timer = setTimeout(() => fail(new Error(`nothing came for ${patience} ms`)), patience);
    told.set(method, (params) => {
      clearTimeout(timer);
      notify(params);
    });
  });
  const change = () => writeFile(join(folder, write.path), write.text);
  if (client.getProtocolEra() === "legacy") {
    if (uri) {
      await client.subscribeResource({ uri }, options);
    }
    await change();
    const params = await next;
    if (uri) {
      await client.unsubscribeResource({ uri }, options);
    }
    return { told: params };
  }
  const wanted = uri ? { resourceSubscriptions: [uri] } : { promptsListChanged: true };
  const subscription = await client.listen(wanted, options);
  await change();
  const params = await next;
  await subscription.close();
  return { honored: subscription.honoredFilter, told: params };
}

async function outcome(call) {
  if (call.pages) return pages(call.pages);
  if (call.cancel) return cancel(call);
  if (call.watch) return watch(call);
  return { result: await ask(call) };
}

// A modern request for a method that there is not has the status 404, as the specification wants. The
// client takes every status but 400 for a failure of its transport, with the error in its text.
function failure(error) {
  complaints.delete(error);
  const told = error instanceof SdkHttpError && error.status === 404 ? JSON.parse(error.data.text).error : error;
  return told !== error || error instanceof ProtocolError
    ? { code: told.code, message: told.message }
    : String(error);
}

async function carryOut(call) {
  asked = [];
  person = call.answer;
  let came;
  try {
    came = await outcome(call);
  } catch (error) {
    came = { error: failure(error) };
  }
  return asked.length ? { ...came, asked } : came;
}

const transport =
  typeof server === "string"
    ? new StreamableHTTPClientTransport(new URL(server))
    : new StdioClientTransport({ command: server[0], args: server.slice(1) });
await client.connect(transport, options);
const outcomes = [];
for (const call of calls) {
  outcomes.push(await carryOut(call));
}
const revision = client.getNegotiatedProtocolVersion();
const minded = [...complaints].map(String);
const identity = { ...client.getServerVersion(), instructions: client.getInstructions() };
await client.close();
console.log(JSON.stringify({ revision, server: identity, outcomes, complaints: minded }));
