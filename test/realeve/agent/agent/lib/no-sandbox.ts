import { defineSandboxProvider } from "eve/sandbox/provider";

const refuse = async () => {
  throw new Error("this agent has no sandbox");
};

/** The scripts run no shell; without a provider of its own eve would ask for one of those it knows. */
export const noSandbox = defineSandboxProvider({
  name: "none",
  environment: () => ({ prepare: async () => ({}), start: refuse, resume: refuse }),
});
