import { defineAgent } from "eve";
import { scriptedModel } from "../../lib/scripted-model";

export default defineAgent({
  description: "Plays the script it is given.",
  model: scriptedModel("helper"),
  experimental: { workflow: { retention: "default" } },
});
