import { defineAgent } from "eve";
import { scriptedModel } from "./lib/scripted-model";

export default defineAgent({
  model: scriptedModel("root"),
  // Keeps a finished session readable; the default drops a signed-in user's session as soon as it ends.
  experimental: { workflow: { retention: "default" } },
});
