// Scenarios with the official npm client; each prints what the test compares.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, ndJsonStream } from "@agentclientprotocol/sdk";

const [name, folder] = process.argv.slice(2);
const updates = [];
const asked = [];
let choose = "allow_once";
const agent = spawn(process.env.TRIMTAB, ["--acp"], { stdio: ["pipe", "pipe", "inherit"] });
const app = client({ name: "scenarios" })
  .onNotification("session/update", ({ params }) => {
    updates.push(params.update);
  })
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params);
    return { outcome: { outcome: "selected", optionId: choose } };
  });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

await app.connectWith(stream, async (peer) => {
const initialized = await peer.request("initialize", {
  protocolVersion: 1,
  clientCapabilities: { session: { notices: {}, compaction: {} } },
});
const open = () => peer.request("session/new", { cwd: folder, mcpServers: [] });
const say = (sessionId, text) =>
  peer.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
const text = () =>
  updates
    .filter((update) => update.sessionUpdate === "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");
const calls = () => updates.filter((update) => update.sessionUpdate.startsWith("tool_call"));

const scenarios = {
    "initialize": async () => [initialized.protocolVersion, initialized.agentInfo.name],
    "answer": async () => {
      const { sessionId } = await open();
      const { stopReason } = await say(sessionId, "answer");
      return [stopReason, text()];
    },
    "permission": async () => {
      const { sessionId } = await open();
      await say(sessionId, "command");
      return [asked.length, asked[0].toolCall.title];
    },
    "rejection": async () => {
      choose = "reject_once";
      const { sessionId } = await open();
      await say(sessionId, "command");
      return [calls().at(-1).status];
    },
    "statuses": async () => {
      const { sessionId } = await open();
      await say(sessionId, "command");
      return calls().map((call) => call.status).filter(Boolean);
    },
    "cancel": async () => {
      const { sessionId } = await open();
      const turn = say(sessionId, "slow");
      await peer.notify("session/cancel", { sessionId });
      return [(await turn).stopReason];
    },
    "load": async () => {
      const { sessionId } = await open();
      await say(sessionId, "answer");
      await peer.request("session/close", { sessionId });
      updates.length = 0;
      await peer.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
      return [text()];
    },
    "resume": async () => {
      const { sessionId } = await open();
      await say(sessionId, "answer");
      await peer.request("session/close", { sessionId });
      updates.length = 0;
      await peer.request("session/resume", { sessionId, cwd: folder, mcpServers: [] });
      return [text(), (await say(sessionId, "answer")).stopReason];
    },
    "list": async () => {
      const { sessionId } = await open();
      const { sessions } = await peer.request("session/list", { cwd: folder });
      return [sessions.some((session) => session.sessionId === sessionId)];
    },
    "mode": async () => {
      const { sessionId, modes } = await open();
      await peer.request("session/set_mode", { sessionId, modeId: "plan" });
      await say(sessionId, "answer");
      const changed = updates.find((update) => update.sessionUpdate === "current_mode_update");
      return [modes.currentModeId, changed.currentModeId];
    },
    "option": async () => {
      const { sessionId } = await open();
      const value = { sessionId, configId: "mode", value: "autopilot" };
      const { configOptions } = await peer.request("session/set_config_option", value);
      return [configOptions.find((option) => option.id === "mode").currentValue];
    },
    "failure": async () => {
      const { sessionId } = await open();
      try {
        await say(sessionId, "fail");
        return ["no error"];
      } catch (error) {
        return [error.code, error.message.includes("no such luck")];
      }
    },
    "usage": async () => {
      const { sessionId } = await open();
      await say(sessionId, "answer");
      return [updates.find((update) => update.sessionUpdate === "usage_update").used > 0];
    },
};

console.log(JSON.stringify(await scenarios[name]()));
});
agent.stdin.end();
await new Promise((ended) => agent.on("exit", ended));
process.exit(0);
