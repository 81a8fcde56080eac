package fakeeve

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

// Forever is a duration that never ends within a test.
const Forever = time.Duration(math.MaxInt64)

// Conn is one request for a session's stream, as a [Script] sees it before anything has been answered.
type Conn struct {
	// Session is the id asked for; of a relayed child its own.
	Session string
	// N counts the stream requests of this session, from 0.
	N int
	// Query is what was asked for, and Start the line it resolves to. Start is -1 for a session that does not exist.
	Query StreamQuery
	Start int64
	// Tail is the number of the last stored line, -1 when there is none.
	Tail int64
	// Request is the request itself.
	Request *http.Request
}

// Script decides what goes wrong with a connection; the zero [Fault] is nothing. It is called for every stream
// request of its session that passes authentication and has a good startIndex, even when the session does not exist,
// so that it can appear later; by several requests at once if they come at once.
type Script func(Conn) Fault

// Faults is a script that gives the n-th connection the n-th fault, and nothing to later ones.
func Faults(faults ...Fault) Script {
	return func(c Conn) Fault {
		if c.N < len(faults) {
			return faults[c.N]
		}
		return Fault{}
	}
}

// How is the way a body is cut off.
type How uint8

const (
	// Clean ends the body with a final chunk: what a proxy does that gives up politely. A plain EOF to the reader.
	Clean How = iota
	// Abort closes the connection without a final chunk: what a killed server does (contract O7).
	Abort
	// Reset is Abort with a TCP reset. Over TCP, bytes the client has not read yet may be lost with it.
	Reset
)

// Point is a place in a response body.
type Point struct {
	line   int64
	offset int64
}

// AtByte is the place after n bytes of the body, heartbeats and everything else included.
func AtByte(n int64) *Point { return &Point{line: -1, offset: n} }

// AtLine is the place n bytes into what is sent for stored line i; n = 0 is just before it, n = its length just before
// its line end.
func AtLine(i, n int64) *Point { return &Point{line: i, offset: n} }

// Fault is what goes wrong with one response. Fields combine; the zero value is a faultless response.
type Fault struct {
	// Delay passes before anything is answered; Forever: never answered.
	Delay time.Duration

	// Status, when not 0, answers with this status, Header and Body instead of a stream.
	Status int
	// Header is added to the response, replacing what is there. A nil value removes the header.
	Header http.Header
	// Body goes with Status; ignored otherwise. One that begins with { is JSON.
	Body string

	// Version, when not 0, serves this response as another stream version, header and framing: another deployment
	// answers. The stored lines stay as they are.
	Version int
	// VersionHeader replaces the text of the version header alone, as in new("28"); empty: no such header.
	VersionHeader *string
	// TailHeader replaces the text of the tail header, where it was asked for; empty: no such header.
	TailHeader *string
	// Lease and Heartbeat replace the server's own for this response; negative: none.
	Lease, Heartbeat time.Duration

	// Verbatim is the whole body, in place of stored lines; the body ends cleanly behind it.
	Verbatim []byte

	// CutAt is where the body ends before its time, and Cut how. nil: it does not.
	CutAt *Point
	Cut   How
	// StallAt is where the body falls silent for Stall, without heartbeats and without a lease end; then it goes on.
	StallAt *Point
	Stall   time.Duration
	// LineDelay passes before each stored line.
	LineDelay time.Duration
	// ChunkSize, when not 0, is the most bytes in one HTTP chunk; 1 sends byte by byte.
	ChunkSize int
	// CRLF ends every line with \r\n.
	CRLF bool
	// Rewrite, when set, gives what is sent for a stored line, without its last line end: garbage, two lines, a
	// record before the line ([Insert]). nil leaves the line out without a word.
	Rewrite func(line int64, raw []byte) []byte
	// Late, when set, tells for a line that was stored after the response opened how many places late it is sent:
	// the order of a live stream up to version 26 (contract O4). A line that waits for others that do not come is
	// sent after 50 ms; one that waits when the response ends is not sent in it. 0 is in its place.
	Late func(line int64) int
}

// lateAtMost is how long a late line waits for the lines that shall come before it.
const lateAtMost = 50 * time.Millisecond

// Refuse is a [Fault] that answers with an error body in Eve's form; code may be empty.
func Refuse(status int, code string) Fault {
	body, err := json.Marshal(refusal{Code: code, Error: "Refused by the script."})
	if err != nil {
		panic("fakeeve: encoding a refusal: " + err.Error())
	}
	return Fault{Status: status, Body: string(body)}
}

// SomeLate is a [Fault] Late: one line in so many, chosen by the seed, comes up to places later than its place.
func SomeLate(seed uint64, oneIn, places int) func(int64) int {
	return func(line int64) int {
		r := rand.New(rand.NewPCG(seed, uint64(line))) //nolint:gosec // chance, not secrecy
		if r.IntN(oneIn) != 0 {
			return 0
		}
		return 1 + r.IntN(places)
	}
}

// Insert is a [Fault] Rewrite that sends these raw lines, none of them counted by the server, before stored line i.
func Insert(i int64, lines ...string) func(int64, []byte) []byte {
	return func(line int64, raw []byte) []byte {
		if line != i {
			return raw
		}
		var out []byte
		for _, l := range lines {
			out = append(append(out, l...), '\n')
		}
		return append(out, raw...)
	}
}

// headerText writes a header whose text a fault may replace or remove.
func headerText(h http.Header, name, text string, replaced *string) {
	if replaced != nil {
		text = *replaced
	}
	if text == "" {
		h.Del(name)
		return
	}
	h.Set(name, text)
}
