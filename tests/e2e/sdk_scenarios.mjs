// Scenarios with the official npm client; prints one JSON line for each.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CopilotClient, RuntimeConnection, approveAll, defineTool } from "@github/copilot-sdk";

const { TRIMTAB, MODEL, PROJECT, STATE } = process.env;
const done = { text: "Done." };
const use = (name, args) => ({ tools: [{ name, arguments: args }] });
const bash = (command) => use("bash", { command, description: "test" });

const telemetry = [];
const client = new CopilotClient({
    onGitHubTelemetry: (told) => telemetry.push(told),
    connection: RuntimeConnection.forStdio({ path: TRIMTAB, args: ["--disable-builtin-mcps"] }),
    workingDirectory: PROJECT,
    baseDirectory: STATE,
});

async function load(replies) {
    const answer = await fetch(`${MODEL}/_trimtab/script`, {
        method: "POST",
        body: JSON.stringify({ replies }),
    });
    if (!answer.ok) throw new Error(`script refused: ${await answer.text()}`);
}

async function talk(replies, config, work) {
    await load(replies);
    const session = await client.createSession({ onPermissionRequest: approveAll, ...config });
    const events = [];
    session.on((event) => events.push(event));
    try {
        return await work(session, events);
    } finally {
        await session.disconnect();
    }
}

const say = async (session, prompt) => (await session.sendAndWait({ prompt }, 15000))?.data.content;

function check(condition, what) {
    if (!condition) throw new Error(what);
}

const results = (events) =>
    events
        .filter((event) => event.type === "tool.execution_complete")
        .map((event) => event.data.result?.content ?? event.data.error?.message);

async function idle(session, events, work) {
    const seen = new Promise((resolve) => session.on("session.idle", resolve));
    await work();
    await seen;
    return events;
}

const scenarios = {
    "a prompt is answered": () =>
        talk([done], {}, async (session) => {
            check((await say(session, "hi")) === "Done.", "the answer");
        }),
    "a client that asks for telemetry is told of the start": () =>
        talk([done], {}, async (session) => {
            await say(session, "hi");
            const told = telemetry.filter((one) => one.sessionId === session.sessionId);
            check(told[0].event.kind === "session_start", "the first event");
            check(told[0].event.properties.selected_model === "scripted", "the model");
        }),
    "streamed pieces add up": () =>
        talk([{ text: "A rather long answer in pieces." }], { streaming: true }, async (s, events) => {
            const answer = await say(s, "hi");
            const pieces = events.filter((event) => event.type === "assistant.message_delta");
            check(pieces.length > 1, "several pieces");
            check(pieces.map((event) => event.data.deltaContent).join("") === answer, "their sum");
        }),
    "a tool of the client is called": () => {
        const tool = defineTool("lookup", {
            description: "Looks up",
            parameters: { type: "object", properties: { key: { type: "string" } } },
            handler: ({ key }) => `value of ${key}`,
        });
        return talk([use("lookup", { key: "a" }), done], { tools: [tool] }, async (s, events) => {
            await say(s, "go");
            check(results(events)[0] === "value of a", results(events)[0]);
        });
    },
    "a failing tool is not the end": () => {
        const tool = defineTool("broken", {
            description: "Fails",
            parameters: { type: "object", properties: {} },
            handler: () => {
                throw new Error("inside");
            },
        });
        return talk([use("broken", {}), done], { tools: [tool] }, async (session) => {
            check((await say(session, "go")) === "Done.", "it went on");
        });
    },
    "permission is asked for and given": () => {
        const asked = [];
        const onPermissionRequest = (request) => {
            asked.push(request.kind);
            return { kind: "approve-once" };
        };
        return talk([bash("echo hello"), done], { onPermissionRequest }, async (s, events) => {
            await say(s, "go");
            check(asked.join() === "shell", asked.join());
            check(results(events)[0].includes("hello"), "it ran");
        });
    },
    "a rejection ends the turn": () => {
        const onPermissionRequest = () => ({ kind: "reject" });
        return talk([bash("touch rejected"), done], { onPermissionRequest }, async (s, events) => {
            await idle(s, events, () => s.send({ prompt: "go" }));
            check(!existsSync(join(PROJECT, "rejected")), "nothing happened");
            check(!events.some((event) => event.data?.content === "Done."), "no further call");
        });
    },
    "a hook denies a tool": () => {
        const hooks = {
            onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "no" }),
        };
        return talk([bash("touch denied"), done], { hooks }, async (session, events) => {
            await say(session, "go");
            check(results(events)[0] === "Denied by preToolUse hook: no", results(events)[0]);
        });
    },
    "a hook changes the prompt": () => {
        const hooks = { onUserPromptSubmitted: () => ({ modifiedPrompt: "other words" }) };
        return talk([done], { hooks }, async (session, events) => {
            await say(session, "words");
            const user = events.find((event) => event.type === "user.message");
            check(user.data.transformedContent.includes("other words"), "the new words");
        });
    },
    "the model asks the person": () => {
        const onUserInputRequest = () => ({ answer: "blue", wasFreeform: true });
        const replies = [use("ask_user", { question: "Which colour?" }), done];
        return talk(replies, { onUserInputRequest }, async (session, events) => {
            await say(session, "go");
            check(results(events)[0] === "User responded: blue", results(events)[0]);
        });
    },
    "the system message is replaced": () => {
        const systemMessage = { mode: "replace", content: "You are a parrot." };
        return talk([done], { systemMessage }, async (session, events) => {
            await say(session, "hi");
            const system = events.find((event) => event.type === "system.message");
            check(system.data.content === "You are a parrot.", system.data.content);
        });
    },
    "abort stops the work": () =>
        talk([bash("sleep 60"), done], {}, async (session, events) => {
            const started = new Promise((go) => session.on("tool.execution_start", go));
            await session.send({ prompt: "go" });
            await started;
            await idle(session, events, () => session.abort());
            check(events.some((event) => event.type === "abort"), "an abort event");
        }),
    "a session is listed, resumed and deleted": () =>
        talk([done, { text: "Again." }], {}, async (session) => {
            await say(session, "first");
            const listed = await client.listSessions();
            check(listed.some((one) => one.sessionId === session.sessionId), "it is listed");
            await session.disconnect();
            const again = await client.resumeSession(session.sessionId, {
                onPermissionRequest: approveAll,
            });
            check((await say(again, "second")) === "Again.", "it goes on");
            const types = (await again.getEvents()).map((event) => event.type);
            check(types.includes("session.resume"), "its history says so");
            await client.deleteSession(session.sessionId);
            const left = await client.listSessions();
            check(!left.some((one) => one.sessionId === session.sessionId), "it is gone");
        }),
    "the server answers about itself": async () => {
        check((await client.ping("x")).message === "pong: x", "ping");
        check((await client.getStatus()).protocolVersion === 3, "status");
        check((await client.listModels()).length > 0, "models");
    },
};

await client.start();
for (const [name, run] of Object.entries(scenarios)) {
    let error = null;
    try {
        await run();
    } catch (failure) {
        error = String(failure?.stack ?? failure);
    }
    console.log(JSON.stringify({ name, error }));
}
await client.stop();
