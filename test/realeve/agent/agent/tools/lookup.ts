import { defineTool } from "eve/tools";

export default defineTool({
  description: "Looks a key up: the same answer every time.",
  inputSchema: {
    type: "object",
    properties: { key: { type: "string" }, bytes: { type: "number" } },
    required: ["key"],
    additionalProperties: false,
  },
  execute({ key, bytes }: { key: string; bytes?: number }) {
    if (key === "boom") throw new Error("lookup failed as told");
    return bytes === undefined ? { key, value: 1 } : { key, value: "v".repeat(bytes) };
  },
});
