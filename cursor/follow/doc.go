// Package follow reads a session through a gateway for as long as it takes: over lost connections, restarts and
// planned ends of gateways, and over restarts of the reader itself.
//
// A [Follower] is made of a client, a request and options; [Follower.Messages] is a loop over what the gateway sends.
// When a call of Subscribe ends before the session (or the bound of the request) does, the loop goes on behind the last
// message it has handled, without the program noticing. It ends after the message with the ENDED checkpoint, after the
// one error it yields, and when the program leaves it.
//
// # Handled, acknowledged, saved
//
// A message is handled once the loop asks for the one after it. That, and nothing that was merely received, is where
// the next call starts, so that a loop is given no record twice and misses none.
//
// A message is acknowledged when it is handled, or, with [WithManualAck], when the program says so by [Follower.Ack].
// [WithSave] saves the cursor behind the last acknowledged message; [WithStart] goes on from it in another process. A
// program that stops between handling and saving is given what it had not saved again: at least once across processes,
// exactly once for a program that saves the cursor together with the effect of the message. A loop that is left by
// break or return has not handled the message it was at.
//
// A second loop of the same Follower starts behind the last acknowledged message, as another process would.
//
// # Failures
//
// What a failed call means is decided by its reason (api.md section 5), and by its code where it has none:
//
//   - What can pass is tried again, for ever or as long as [Backoff] says: a gateway that drains, restarts or cannot
//     reach its agent, caps that are reached, connections that break. The wait is as long as the gateway asks for, and
//     grows while nothing is gained; half of it is random, so that the clients of one gateway do not come back as one.
//   - What may be a broken connection or a permanent fault, such as the code INTERNAL without a reason, and a credential
//     that ran out, is tried again only after a call that gained something: the same failure twice in a row is final.
//   - What will not change is yielded as an [*Error] at once: a cursor that the history has left behind, a session
//     that is unknown, a caller that may not read it.
//
// A call has gained something when the cursor moved, or when it was open for longer than the longest wait between calls:
// one checkpoint before each failure is no reason to come back at once.
//
// # What to know
//
// Bounds are taken anew by each call. A read until the tail that broke off ends at the tail there is then. A read until
// the end of a turn that breaks off between the record that ends the turn and the ENDED checkpoint waits for the next
// turn: a loop that looks for the record itself does not.
//
// Checkpoints are messages like others, and each call sends its own: a loop over several calls may see CAUGHT_UP more
// than once.
//
// The connection is the program's. Calls fail at once while it is down, and grpc-go by default waits up to two minutes
// before it connects again: give it a shorter [grpc.ConnectParams]. Pings ([grpc.WithKeepaliveParams], with a Time of
// at least 10 s, since gateways refuse more) find a connection that died without a word while a call is being opened;
// from then on the heartbeats of the stream do, see [WithSilence].
package follow
