import { defineTool } from "eve/tools";

export default defineTool({
  description: "Counts, and reports on the way.",
  inputSchema: {
    type: "object",
    properties: { steps: { type: "number" } },
    required: ["steps"],
    additionalProperties: false,
  },
  async *execute({ steps }: { steps: number }) {
    for (let done = 0; done <= steps; done += 1) {
      yield { done, of: steps };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
});
