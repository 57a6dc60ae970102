// The table of calls with the official npm client; prints one JSON line for each scenario.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CopilotClient, RuntimeConnection, approveAll } from "@github/copilot-sdk";

const { TRIMTAB, MODEL, FOLDER, TABLE, TRANSPORT } = process.env;
const { scenarios, skill, agents } = JSON.parse(readFileSync(TABLE, "utf8"));
const ANYTHING = "...";

function check(found, expected, where) {
    if (expected === ANYTHING) {
        const empty = found === null || found === undefined || found === "";
        if (empty || (typeof found === "object" && Object.keys(found).length === 0))
            throw new Error(`${where} is empty`);
    } else if (Array.isArray(expected)) {
        if (found?.length !== expected.length)
            throw new Error(`${where}: ${JSON.stringify(found)}`);
        expected.forEach((entry, number) => check(found[number], entry, `${where}[${number}]`));
    } else if (expected !== null && typeof expected === "object") {
        for (const [name, entry] of Object.entries(expected))
            check(found?.[name], entry, `${where}.${name}`);
    } else if ((found ?? null) !== expected) {
        throw new Error(`${where} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
    }
}

const fill = (value, facts) =>
    JSON.parse(
        Object.entries(facts).reduce(
            (text, [name, fact]) => text.replaceAll(`{${name}}`, fact),
            JSON.stringify(value),
        ),
    );
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

async function call(client, session, path, params) {
    const names = path.split(".").map(camel);
    let owner = session.rpc;
    if (names[0] === "server") {
        owner = client.rpc;
        names.shift();
    }
    const last = names.pop();
    for (const name of names) owner = owner[name];
    return await owner[last](params);
}

async function play(client, session, step, facts) {
    if (step[0] === "say") {
        const answer = await session.sendAndWait({ prompt: "go" }, 30000);
        check(answer?.data.content, "Done.", "the answer");
        return;
    }
    const [path, params, expected] = fill(step, facts);
    if (typeof expected === "string" && expected !== ANYTHING && !expected.startsWith("value:")) {
        let failure = null;
        try {
            await call(client, session, path, params);
        } catch (error) {
            failure = String(error);
        }
        if (!failure?.includes(expected)) throw new Error(`${path}: ${failure}`);
        return;
    }
    const answer = await call(client, session, path, params);
    if (expected === ANYTHING) return;
    if (typeof expected === "string") check(answer, expected.slice("value:".length), path);
    else check(answer, expected, path);
}

async function run(name, { steps, replies }) {
    const folder = mkdtempSync(join(FOLDER, "call-"));
    const facts = { cwd: join(folder, "project"), home: join(folder, "home") };
    mkdirSync(facts.cwd);
    mkdirSync(join(facts.home, "skills", "knots"), { recursive: true });
    writeFileSync(join(facts.home, "skills", "knots", "SKILL.md"), skill);
    const loaded = await fetch(`${MODEL}/_trimtab/script`, {
        method: "POST",
        body: JSON.stringify({ replies }),
    });
    if (!loaded.ok) throw new Error(await loaded.text());
    const connection =
        TRANSPORT === "tcp"
            ? RuntimeConnection.forTcp({ path: TRIMTAB, args: ["--disable-builtin-mcps"] })
            : RuntimeConnection.forStdio({ path: TRIMTAB, args: ["--disable-builtin-mcps"] });
    const client = new CopilotClient({
        connection,
        workingDirectory: facts.cwd,
        baseDirectory: facts.home,
    });
    await client.start();
    try {
        const session = await client.createSession({
            onPermissionRequest: approveAll,
            skillDirectories: [join(facts.home, "skills")],
            customAgents: agents,
        });
        facts.id = session.sessionId;
        for (const step of steps) await play(client, session, step, facts);
    } finally {
        await client.stop();
    }
}

for (const [name, scenario] of Object.entries(scenarios)) {
    let error = null;
    try {
        await run(name, scenario);
    } catch (failure) {
        error = String(failure?.stack ?? failure);
    }
    console.log(JSON.stringify({ name, error }));
}
