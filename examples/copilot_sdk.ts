// Drives Trimtab with the official Copilot SDK for TypeScript: a tool, a permission, an answer.
import { CopilotClient, RuntimeConnection, defineTool } from "@github/copilot-sdk";

const weather = defineTool("weather", {
    description: "The weather in a city",
    parameters: {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
    },
    handler: ({ city }) => `It is sunny in ${city}.`,
});

const client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: process.env.TRIMTAB ?? "trimtab" }),
});
const session = await client.createSession({
    tools: [weather],
    // Everything may be read and our own tools called; nothing else.
    onPermissionRequest: (request) =>
        request.kind === "read" || request.kind === "custom-tool"
            ? { kind: "approve-once" }
            : { kind: "reject", feedback: "This example only looks." },
});
const answer = await session.sendAndWait({ prompt: "What is the weather in Bonn?" });
console.log(answer?.data.content);
await client.stop();
