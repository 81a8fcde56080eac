import { defineTool } from "eve/tools";
import { always } from "eve/tools/approval";

export default defineTool({
  description: "Refunds an amount, once a person has approved it.",
  approval: always(),
  inputSchema: {
    type: "object",
    properties: { amount: { type: "number" } },
    required: ["amount"],
    additionalProperties: false,
  },
  execute: ({ amount }: { amount: number }) => ({ refunded: amount }),
});
