package chaos_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/guarantee"
)

// maxLine is the largest line that the gateway of a run reads; only lines that are meant to are longer.
const maxLine = 16 << 10

// maxHeld is how much the gateway may take from the server while a client takes nothing: what it hands from the reading
// goroutine to the sending one, twice 1 MiB, and what is on the way.
const maxHeld = 5 << 19

// maxPlaces is how many places late an event is told at most.
const maxPlaces = 4

// traits are what is unusual about a session. Not all go together.
type traits struct {
	late      bool // events can come out of order (21 to 26)
	crossed   bool // the server changes between the version 27 and earlier ones
	skips     bool // some lines are gone from the outset, or go (27)
	rewritten bool // the history is replaced by another one on the way
	oversize  bool // some lines are larger than the gateway reads
	flood     bool // much more than anybody may buffer
	terminal  bool // the session ends
	behind    bool // lines are stored behind the session's end
	closed    bool // in the end the stored stream is
}

// stored is a session at the scripted server, with all that will ever be stored of it.
type stored struct {
	id      string
	version int
	traits
	eve *fakeeve.Session
	log *fakeeve.MemLog

	lines   [][]byte // of the present history; nil: skipped
	n       int      // stored so far
	salt    int
	past    [][][]byte // histories before the present one
	trimmed map[int64]bool
}

// newStored draws a session and its first lines.
func newStored(rnd *rand.Rand, id string) *stored {
	s := &stored{id: id, version: 27, trimmed: map[int64]bool{}}
	if rnd.IntN(2) == 0 {
		s.version = 21 + rnd.IntN(6)
	}
	s.terminal = rnd.IntN(10) < 6
	s.closed = s.terminal || rnd.IntN(10) < 6
	// Up to version 26 what comes behind the end may be what the end has overtaken; real servers store nothing there.
	s.behind = s.terminal && s.version == 27 && rnd.IntN(4) == 0
	// One thing at a time: what they mean together is nowhere promised.
	switch d := rnd.IntN(100); {
	case d < 8:
		s.crossed, s.behind = true, false
	case d < 18:
		s.rewritten, s.behind = true, false
	case d < 28:
		s.oversize = true
	case d < 29:
		s.flood = true
	case d < 55 && s.version == 27:
		s.skips = true
	case d < 75 && s.version < 27:
		s.late = true
	}
	n := 1 + rnd.IntN(40)
	if s.flood {
		n = 200 + rnd.IntN(50)
	}
	s.draw(rnd, n)
	s.log = fakeeve.NewMemLog()
	s.store(rnd.IntN(len(s.lines) + 1))
	return s
}

// draw makes up n more lines, and the end.
func (s *stored) draw(rnd *rand.Rand, n int) {
	for range n {
		s.lines = append(s.lines, s.line(rnd, len(s.lines)))
	}
	if !s.terminal {
		return
	}
	s.lines = append(s.lines, s.last(rnd, len(s.lines)))
	if s.behind {
		for range 1 + rnd.IntN(3) {
			s.lines = append(s.lines, s.line(rnd, len(s.lines)))
		}
	}
}

// store stores the next n lines.
func (s *stored) store(n int) {
	n = min(n, len(s.lines)-s.n)
	s.log.AppendRaw(s.lines[s.n : s.n+n]...)
	s.n += n
}

// rewrite gives the session another history, which has the first keep lines in common with the present one.
func (s *stored) rewrite(rnd *rand.Rand, keep, n int) {
	if s.terminal {
		keep = min(keep, int(s.end())-1)
	}
	s.past = append(s.past, slices.Clone(s.lines[:s.n]))
	s.salt++
	s.lines = slices.Clone(s.lines[:keep])
	s.draw(rnd, n)
	s.log = fakeeve.NewMemLog()
	s.n = 0
	s.store(keep + rnd.IntN(len(s.lines)-keep+1))
}

// trim takes stored lines away from readers to come; never the one that ends the session.
func (s *stored) trim(from, to int) {
	to = min(to, s.n)
	if s.terminal {
		to = min(to, int(s.end())-1)
	}
	s.log.Trim(int64(from), int64(max(from, to)))
	for i := from; i < to; i++ {
		s.trimmed[int64(i)] = true
	}
}

// end is how many lines a reader is to consume in the end.
func (s *stored) end() int64 {
	if s.terminal {
		for i, l := range s.lines {
			if bytes.Contains(l, []byte(`"session.ended"`)) || bytes.Contains(l, []byte(`"session.completed"`)) ||
				bytes.Contains(l, []byte(`"session.failed"`)) {
				return int64(i + 1)
			}
		}
	}
	return int64(len(s.lines))
}

// promise is what the reader of an agent is promised.
func (s *stored) promise(agent string) guarantee.Session {
	p := guarantee.Session{Agent: agent, ID: s.id, Closed: s.closed, Crossed: s.crossed, MaxLineBytes: maxLine, MaxHeld: maxHeld}
	if s.late {
		p.Late = 2 * maxPlaces
	}
	if s.skips {
		p.Trimmed = func(i int64) bool { return s.trimmed[i] }
	}
	for _, lines := range append(slices.Clone(s.past), s.lines) {
		log := fakeeve.NewMemLog()
		log.AppendRaw(lines...)
		p.Histories = append(p.Histories, guarantee.Lines(slices.Collect(fakeeve.Entries(log, s.version, 0, -1))))
	}
	return p
}

// mark makes each record differ from every other.
func (s *stored) mark(line, slot int) string {
	return fmt.Sprintf("%s/%d/%d.%d", s.id, s.salt, line, slot)
}

// line makes up line i.
func (s *stored) line(rnd *rand.Rand, i int) []byte {
	switch {
	case s.skips && rnd.IntN(8) == 0:
		return nil
	case s.oversize && rnd.IntN(10) == 0:
		return s.large(i, maxLine+1000+rnd.IntN(20000))
	case s.flood:
		return s.large(i, maxLine-1000)
	case s.version < 27:
		return s.event(rnd, i)
	}
	switch d := rnd.IntN(100); {
	case d < 30:
		return []byte(s.progress(rnd, i))
	case d < 40:
		return []byte(s.garbage(rnd, i))
	case d < 43:
		return s.large(i, 5000+rnd.IntN(3000)) // more than the least that a client can ask for
	}
	return []byte(s.commit(rnd, i, rnd.IntN(6)))
}

// large is a line of about n bytes.
func (s *stored) large(i, n int) []byte {
	text := strings.Repeat("the tide turns at seven. ", n/25)
	if s.version < 27 {
		return fmt.Appendf(nil, `{"type":"action.result","data":{"m":%q,"output":%q},"meta":{"id":"evt_%s"}}`, s.mark(i, 0), text, s.mark(i, 0))
	}
	return fmt.Appendf(nil, `{"at":%q,"facts":[{"type":"call.settled","data":{"m":%q,"output":%q}}]}`, s.at(i), s.mark(i, 0), text)
}

func (s *stored) at(i int) string {
	return fmt.Sprintf("2026-11-%02dT09:%02d:%02d.000Z", 1+s.salt, i/60%60, i%60)
}

// commit makes up a commit of n facts.
func (s *stored) commit(rnd *rand.Rand, i, n int) string {
	facts := make([]string, n)
	for slot := range facts {
		facts[slot] = s.fact(rnd, i, slot)
	}
	at := s.at(i)
	if rnd.IntN(20) == 0 {
		at = "yesterday, " + at
	}
	return fmt.Sprintf(`{"at":%q,"facts":[%s]}`, at, strings.Join(facts, ","))
}

func (s *stored) fact(rnd *rand.Rand, i, slot int) string {
	m := s.mark(i, slot)
	switch rnd.IntN(14) {
	case 0:
		return fmt.Sprintf(`{"type":"turn.settled","scope":{"turnId":"turn_1"},"data":{"turnId":"turn_1","outcome":"completed","m":%q}}`, m)
	case 1:
		return fmt.Sprintf(`{"type":"turn.paused","data":{"turnId":"turn_1","awaiting":[{"callId":"c"},{"interactionId":"i"}],"m":%q}}`, m)
	case 2:
		return fmt.Sprintf(`{"type":"turn.paused","data":{"turnId":"turn_1","awaiting":[{"taskId":"t"}],"m":%q}}`, m)
	case 3, 4:
		return fmt.Sprintf(`{"type":"x.unknown","data":[%q]}`, m)
	case 5:
		return fmt.Sprintf(`{ "type" : "content.completed" , "data" : {"value":"\ud83d", "m":%q} }`, m)
	case 6:
		return fmt.Sprintf(`{"type":"delivery.settled","data":{"deliveryId":"d_%d","outcome":"handled","m":%q}}`, i%3, m)
	case 7:
		return fmt.Sprintf("{\"type\":\"call.started\",\"data\":{\"callId\":\"\xff\",\"m\":%q}}", m)
	case 8:
		return pick(rnd, `5`, `null`, `[]`, `{"type":7}`, `{}`)
	default:
		return fmt.Sprintf(`{"type":%q,"data":{"m":%q}}`, pick(rnd, "turn.started", "call.settled", "usage.recorded", "model.started"), m)
	}
}

func (s *stored) progress(rnd *rand.Rand, i int) string {
	return fmt.Sprintf(`{"progress":{"type":%q,"data":{"partId":"p","delta":%q}}}`,
		pick(rnd, "content.delta", "content.delta", "call.progress", "x.progress"), s.mark(i, 0))
}

// garbage makes up a line that counts and says nothing.
func (s *stored) garbage(rnd *rand.Rand, i int) string {
	if s.rewritten { // a line that is the same in both histories is no sign that they differ
		return "nothing at " + s.mark(i, 0)
	}
	if s.crossed { // what an older version would call an event is none here
		return pick(rnd, `{"at":`, `[1,2]`, `5`, "\xff\xfe", `nothing`)
	}
	if s.version < 27 {
		return pick(rnd, `{"type":`, `[1,2]`, `5`, "\xff\xfe", `nothing`, `{"data":{}}`)
	}
	return pick(rnd, `{"at":`, `[1,2]`, `5`, "\xff\xfe", `nothing`, `{"data":{}}`, `{"$eve":5}`, `{"$eve":"position"}`,
		`{"$eve":"position","next":"7"}`, `{"type":"x"}`, `{"facts":[1],"at":5}`, `{"facts":{},"at":"now"}`, `{"progress":[1]}`)
}

// event makes up an event.
func (s *stored) event(rnd *rand.Rand, i int) []byte {
	m := s.mark(i, 0)
	typ := pick(rnd, "step.started", "message.appended", "message.appended", "message.completed", "action.partial", "action.result",
		"turn.completed", "session.waiting", "x.custom")
	meta := fmt.Sprintf(`,"meta":{"id":"evt_%s","at":%q}`, m, s.at(i))
	switch d := rnd.IntN(100); {
	case d < 6:
		return []byte(s.garbage(rnd, i))
	case d < 9:
		return s.large(i, 5000+rnd.IntN(3000))
	case d < 15 && !s.late:
		meta = fmt.Sprintf(`,"meta":{"at":%q}`, s.at(i))
	case d < 18 && !s.late && !s.crossed:
		meta = ""
	case d < 22:
		return fmt.Appendf(nil, `{"type":"turn.waiting","data":{"on":%q,"m":%q}%s}`, pick(rnd, "tasks", "input"), m, meta)
	}
	return fmt.Appendf(nil, `{"type":%q,"data":{"m":%q}%s}`, typ, m, meta)
}

// last makes up the line that ends the session.
func (s *stored) last(rnd *rand.Rand, i int) []byte {
	if s.version < 27 {
		return fmt.Appendf(nil, `{"type":%q,"data":{},"meta":{"id":"evt_%s","at":%q}}`,
			pick(rnd, "session.completed", "session.failed"), s.mark(i, 0), s.at(i))
	}
	facts := make([]string, 1+rnd.IntN(4))
	end := rnd.IntN(len(facts))
	for slot := range facts {
		facts[slot] = fmt.Sprintf(`{"type":"x.last","data":%q}`, s.mark(i, slot))
		if slot == end {
			facts[slot] = fmt.Sprintf(`{"type":"session.ended","data":{"outcome":"completed","m":%q}}`, s.mark(i, slot))
		}
	}
	return fmt.Appendf(nil, `{"at":%q,"facts":[%s]}`, s.at(i), strings.Join(facts, ","))
}

// pick draws one of several.
func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }
