// Package fakeeve is a scripted Eve server: the other side of tests, of the demo and of benchmarks.
//
// A [Server] is an [net/http.Handler] that speaks Eve's HTTP surface at stream versions 21 to 27 as the contract
// describes it (comments cite its sections, and by O1 to O18 what was observed at the real server), and on demand
// behaves as badly as proxies, deploys and crashes make a real one behave. Its tests replay recorded exchanges with
// the real version 26 server (testdata/captures) and compare status, headers, lines and times. It shares no code with
// the gateway, so that neither can hide a mistake of the other.
//
// # Running it
//
// [StartPipe] serves it in memory: inside a testing/synctest bubble leases, heartbeats and delays then pass in virtual
// time. [StartTCP] serves it on a loopback port. Both answers have a Client, a Transport and a Close that leaves no
// goroutine behind; a gateway under test gets the Transport, or [PipeListener.DialContext]. As a plain handler it also
// runs under net/http/httptest; call [Server.CutAll] there before closing the server, which otherwise waits for open
// streams.
//
// # Sessions and their logs
//
// A session is an id, a stream version and a [Log], the stored stream:
//
//   - [NewMemLog] grows under its followers ([MemLog.Append], [MemLog.End]) and can be rewritten as no real log is
//     ([MemLog.Replace], [MemLog.Trim], [MemLog.Truncate], [MemLog.Purge]).
//   - [Generated] is a finished session of any length that takes no memory; [Continue] makes it the past of a live one.
//   - [Server.AddTranscript] plays the transcripts that are embedded here byte for byte, with what a correct reader
//     counts in them ([TranscriptFile]).
//
// Sessions are also created by POST, and messages to them are answered by the server's [Agent]: [Echo] by default,
// [Scripted] lines, or one's own.
//
// What a reader must find in a log is told by [Entries] and [Records], what is in a body by [ReadBody]: the oracle of
// every comparison.
//
// # Faults
//
// A [Script] gives each connection to a session a [Fault]: an answer other than a stream, other headers, a body that is
// cut at any byte in one of three ways, that stalls, that dribbles, that holds other lines. [Faults] is a list of them,
// one for each connection. [Server.ScriptRoute] does it for the other routes, lost answers included; [Session.Update],
// [Session.Expire] and [Server.RemoveSession] change what a session is. [SessionSpec] and its [Quirks] hold what is
// not a fault but a difference between servers.
//
// [Server.Requests] tells what was asked and how each answer ended, [Server.OpenBodies] and [Server.OpenBodiesOf] what
// is open now.
//
// # Where it is not like a real server
//
//   - The status line has a reason phrase, lines are sent in as few chunks as possible unless a [Fault] has a ChunkSize,
//     and a request is answered at once.
//   - A stream ends when its log is closed, not when a terminal line is in it: append the line, then call [MemLog.End].
//   - Lines are sent as they are stored, whatever the version: a log can hold what no server would store.
//   - A line that is skipped is told by a position record at versions 21 to 26 too, where real servers have none: there
//     is no other way to tell.
//   - Answers that were never recorded (receipts and routes of 0.84 and later) follow the contract's reading of them.
package fakeeve
