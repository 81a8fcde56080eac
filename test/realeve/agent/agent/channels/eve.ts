import { type AuthFn, withAuthChallenges } from "eve/channels/auth";
import { eveChannel } from "eve/channels/eve";

// Two users, so that one can answer what was asked of the other. The tokens guard nothing: the server listens on
// loopback and lives as long as the tests.
const users: Record<string, string> = { "realeve-alice": "alice", "realeve-bob": "bob" };

const bearer: AuthFn<Request> = withAuthChallenges(
  (request) => {
    const [scheme = "", token = ""] = (request.headers.get("authorization") ?? "").split(" ");
    const user = scheme.toLowerCase() === "bearer" ? users[token] : undefined;
    if (user === undefined) return null;
    return { authenticator: "realeve", principalId: user, principalType: "user", subject: user, attributes: {} };
  },
  [{ scheme: "Bearer" }],
);

export default eveChannel({ auth: [bearer] });
