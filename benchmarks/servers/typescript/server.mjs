// The prompts, served by the official TypeScript SDK: over HTTP if a port is given, otherwise over stdio.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, completable, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const pictures = new Map(); // each is read on first use
const read = (name) => {
  if (!pictures.has(name)) pictures.set(name, readFileSync(join(process.env.BENCHMARK_PICTURES, name)));
  return pictures.get(name);
};
const LANGUAGES = ["python", "rust", "go"];
const NAMED = 5;

const text = (words, role = "user") => ({ role, content: { type: "text", text: words } });
const image = (data) => ({
  role: "user",
  content: { type: "image", data: data.toString("base64"), mimeType: "image/png" },
});
const completeLanguage = (typed) => LANGUAGES.filter((language) => language.startsWith(typed));

const review = () => [
  {
    description: "Review code in a language.",
    argsSchema: z.object({
      code: z.string(),
      language: completable(z.enum(LANGUAGES).default("python"), completeLanguage),
      depth: z.coerce.number().int().default(1),
    }),
  },
  ({ code, language, depth }) => ({
    description: "Review code in a language.",
    messages: [text(`Review this ${language} code, ${depth} deep.\n\n${code}`)],
  }),
];

const Change = z.object({ title: z.string(), files: z.array(z.string()), urgent: z.boolean() });

const makeServer = () => {
  const server = new McpServer({ name: "benchmark", version: "1" });
  server.registerPrompt(
    "plain",
    { description: "Review a piece of code.", argsSchema: z.object({ code: z.string() }) },
    ({ code }) => ({
      description: "Review a piece of code.",
      messages: [text(`Review this code.\n\n${code}`)],
    }),
  );
  server.registerPrompt("typed", ...review());
  server.registerPrompt(
    "structured",
    {
      description: "Review a change.",
      argsSchema: z.object({ change: z.string().transform(JSON.parse).pipe(Change) }),
    },
    ({ change }) => ({
      description: "Review a change.",
      messages: [
        text(`Review '${change.title}' ${change.urgent ? "now" : "later"}: ${change.files.join(", ")}`),
      ],
    }),
  );
  server.registerPrompt(
    "turns",
    { description: "Walk through an error.", argsSchema: z.object({ error: z.string() }) },
    ({ error }) => ({
      description: "Walk through an error.",
      messages: [
        text(`I see an error: ${error}`),
        text("What have you tried so far?", "assistant"),
        text("I have restarted the service."),
      ],
    }),
  );
  server.registerPrompt(
    "picture",
    { description: "Look at a picture.", argsSchema: z.object({ caption: z.string() }) },
    ({ caption }) => ({
      description: "Look at a picture.",
      messages: [text(caption), image(read("picture.png"))],
    }),
  );
  for (let number = 0; number < Number(process.env.BENCHMARK_PROMPTS) - NAMED; number++) {
    server.registerPrompt(`generated_${String(number).padStart(5, "0")}`, ...review());
  }
  return server;
};

const port = process.argv[2];
if (port === undefined) {
  serveStdio(makeServer);
} else {
  const validateHost = localhostHostValidation();
  const validateOrigin = localhostOriginValidation();
  const handle = toNodeHandler(createMcpHandler(makeServer, { responseMode: "json" }));
  createServer((request, response) => {
    if (validateHost(request, response) && validateOrigin(request, response)) handle(request, response);
  }).listen(Number(port), "127.0.0.1");
}
