// A model that plays scripts, so that the tests know what an agent does before it does it.
//
// A user message that starts with "/" names a script and its arguments; the latest one is played. Each model call of
// a turn plays one step: `results` holds the outputs of the tools that were called since the script was given.
import { mockModel } from "eve/evals";

type Call = { tool: string; input: unknown; pieces?: string[] };
type Step = { reasoning?: string[]; text?: string[]; calls?: Call[]; everyMs?: number; hang?: boolean };
type Play = { args: string[]; results: unknown[]; settledTask: boolean };

const pieces = ([count = "10", size = "10"]: string[]) =>
  Array.from({ length: Number(count) }, (_, i) => `${i}:`.padEnd(Number(size), "."));

/** A tool call first, then a text that quotes its result. */
const callThenTell = (call: Call) => ({ results }: Play): Step =>
  results.length === 0 ? { calls: [call] } : { text: [`result: ${JSON.stringify(results.at(-1))}`.slice(0, 200)] };

const scripts: Record<string, (play: Play) => Step> = {
  // /echo TEXT: says it back.
  "/echo": ({ args }) => ({ text: [args.join(" ")] }),
  // /chunks COUNT SIZE MS: that many text deltas of that size, so many milliseconds apart.
  "/chunks": ({ args }) => ({ text: pieces(args), everyMs: Number(args[2] ?? 0) }),
  // /reason COUNT SIZE MS: the same as reasoning, then a short answer.
  "/reason": ({ args }) => ({ reasoning: pieces(args), text: ["reasoned"], everyMs: Number(args[2] ?? 0) }),
  // /input COUNT SIZE MS: one tool call whose input arrives in that many deltas.
  "/input": ({ args, results }) =>
    results.length === 0
      ? { calls: [{ tool: "lookup", input: { key: pieces(args).join("") }, pieces: ['{"key":"', ...pieces(args), '"}'] }], everyMs: Number(args[2] ?? 0) }
      : { text: ["looked up"] },
  // /tool [KEY]: one tool call; the key "boom" makes it fail.
  "/tool": (play) => callThenTell({ tool: "lookup", input: { key: play.args[0] ?? "alpha" } })(play),
  // /parallel COUNT: that many tool calls in one model call.
  "/parallel": ({ args, results }) =>
    results.length === 0
      ? { calls: Array.from({ length: Number(args[0] ?? 3) }, (_, i) => ({ tool: "lookup", input: { key: `key-${i}` } })) }
      : { text: ["all looked up"] },
  // /steps COUNT: that many tool calls, each in a model call of its own.
  "/steps": ({ args, results }) =>
    results.length < Number(args[0] ?? 3)
      ? { calls: [{ tool: "lookup", input: { key: `step-${results.length}` } }] }
      : { text: ["all steps done"] },
  // /big BYTES: a tool result of that size, all in one event.
  "/big": ({ args, results }) =>
    results.length === 0 ? { calls: [{ tool: "lookup", input: { key: "big", bytes: Number(args[0] ?? 1000) } }] } : { text: ["that was big"] },
  // /progress COUNT: a tool that reports that many previews before its result.
  "/progress": (play) => callThenTell({ tool: "progress", input: { steps: Number(play.args[0] ?? 3) } })(play),
  // /approve: a tool that a person has to approve.
  "/approve": callThenTell({ tool: "refund", input: { amount: 12 } }),
  // /ask: a question to a person.
  "/ask": callThenTell({ tool: "ask_question", input: { question: "Which way?", options: [{ label: "Left", description: "the left one" }, { label: "Right", description: "the right one" }] } }),
  // /delegate SCRIPT: gives the script to a subagent.
  "/delegate": ({ args, results, settledTask }) =>
    results.length === 0
      ? { calls: [{ tool: "helper", input: { message: args.join(" ") } }] }
      : { text: [settledTask ? "the helper is done" : "the helper is at work"] },
  // /fail: the model call fails.
  "/fail": () => {
    throw new Error("scripted failure");
  },
  // /wait: says something, then nothing until the turn is cancelled.
  "/wait": () => ({ text: ["waiting"], hang: true }),
};

// The options of a model call are the provider interface of the AI SDK; only what is read here matters.
type Part = { type: string; text?: string; output?: { value?: unknown; reason?: unknown } };
type Message = { role: string; content: string | Part[] };
type CallOptions = { prompt: Message[]; abortSignal?: AbortSignal };

const textOf = ({ content }: Message) =>
  typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");

/** A subagent finds what its caller wrote behind a preamble. */
const scriptOf = (message: Message) => textOf(message).split("Caller message:\n").at(-1)!.trim();

function nextStep({ prompt }: CallOptions): Step {
  const at = prompt.findLastIndex((message) => message.role === "user" && scriptOf(message).startsWith("/"));
  if (at === -1) return { text: ["no script"] };
  const [name, ...args] = scriptOf(prompt[at]!).split(/\s+/);
  const since = prompt.slice(at + 1);
  const play = scripts[name!];
  if (play === undefined) return { text: [`no script ${name}`] };
  return play({
    args,
    results: since.flatMap(({ role, content }) =>
      role !== "tool" || typeof content === "string" ? [] : content.filter(({ type }) => type === "tool-result").map(({ output }) => output?.value ?? output?.reason ?? null),
    ),
    settledTask: since.some((message) => message.role === "user" && textOf(message).includes("task_result")),
  });
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function* streamOf(step: Step, { prompt, abortSignal }: CallOptions) {
  const pause = () => (step.everyMs ? sleep(step.everyMs) : undefined);
  yield { type: "stream-start", warnings: [] };
  for (const kind of ["reasoning", "text"] as const) {
    if (step[kind] === undefined) continue;
    yield { type: `${kind}-start`, id: kind };
    for (const delta of step[kind]) {
      await pause();
      yield { type: `${kind}-delta`, id: kind, delta };
    }
    if (step.hang) await new Promise((_, reject) => abortSignal?.addEventListener("abort", () => reject(abortSignal.reason)));
    yield { type: `${kind}-end`, id: kind };
  }
  for (const [i, call] of (step.calls ?? []).entries()) {
    // Unique in the session, because the prompt only grows.
    const id = `call-${prompt.length}-${i}`;
    if (call.pieces) {
      yield { type: "tool-input-start", id, toolName: call.tool };
      for (const delta of call.pieces) {
        await pause();
        yield { type: "tool-input-delta", id, delta };
      }
      yield { type: "tool-input-end", id };
    }
    yield { type: "tool-call", toolCallId: id, toolName: call.tool, input: JSON.stringify(call.input) };
  }
  yield {
    type: "finish",
    finishReason: { raw: undefined, unified: step.calls ? "tool-calls" : "stop" },
    usage: { inputTokens: { cacheRead: 0, cacheWrite: 0, noCache: 7, total: 7 }, outputTokens: { reasoning: 0, text: 5, total: 5 } },
  };
}

export function scriptedModel(modelId: string) {
  // What a mock model brings is that eve asks for no provider key. It also answers calls that do not stream.
  const model = mockModel({ provider: "scripted", modelId, respond: "a summary" }) as any;
  model.doStream = async (options: CallOptions) => ({ stream: ReadableStream.from(streamOf(nextStep(options), options)) });
  return model;
}
