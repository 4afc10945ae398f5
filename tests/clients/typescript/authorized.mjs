// The official TypeScript client gets a token from an issuer, and further ones when the server requires them.
//
// Standard input holds one JSON document: the URL of the server, and the client's mode. Standard output
// gets another: the names of the prompts, the revision, and the scopes of each token that it got.

import { text } from "node:stream/consumers";

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const { server, mode } = JSON.parse(await text(process.stdin));
const kept = {};
const granted = [];
let answer;

const provider = {
  redirectUrl: "http://127.0.0.1:1/callback",
  clientMetadata: { client_name: "script", redirect_uris: ["http://127.0.0.1:1/callback"] },
  state: () => "state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
    granted.push(tokens.scope);
  },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  // A browser would follow the redirect, and a person would agree.
  redirectToAuthorization: async (url) => {
    const response = await fetch(url, { redirect: "manual" });
    answer = new URL(response.headers.get("location")).searchParams;
  },
};

async function connected() {
  for (let tries = 0; ; tries++) {
    const client = new Client({ name: "script", version: "1.0.0" }, { versionNegotiation: { mode } });
    const transport = new StreamableHTTPClientTransport(new URL(server), { authProvider: provider });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || tries > 4) throw error;
      await transport.finishAuth(answer);
    }
  }
}

const client = await connected();
const { prompts } = await client.listPrompts();
const { messages } = await client.getPrompt({ name: "greet", arguments: { name: "Ada" } });
const revision = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ prompts: prompts.map(({ name }) => name), text: messages[0].content.text, revision, granted }));
