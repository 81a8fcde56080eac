package guarantee

import (
	"fmt"
	"math/bits"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/cursor"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// Check goes through the calls of one client, in the order in which they were made, and returns every violation.
func Check(s Session, calls []Call) []Violation {
	c := &check{session: s, known: map[string]state{}}
	for _, l := range s.Histories {
		c.histories = append(c.histories, newHistory(l))
	}
	for i := range calls {
		c.call(i, &calls[i])
	}
	return c.found
}

// check is one run of [Check].
type check struct {
	session   Session
	histories []*history
	known     map[string]state // what had been consumed, by the cursor that was handed out
	found     []Violation
}

// state is what a client has consumed at some cursor.
type state struct {
	// at: everything before it is consumed. With late events, at.line is the number of events that are.
	at position
	// agree is the set of histories that hold all that was delivered.
	agree uint64
	// blind: what stands right before at is known to nobody, so that the gateway cannot tell one history from another.
	blind bool
	// late is kept where events can be late; nil where they cannot.
	late *lateness
}

// walk is the check of one call.
type walk struct {
	*check
	state
	call     int
	c        *Call
	message  int
	begin    position
	relative bool // begin is not known before the POSITIONED checkpoint
	ended    bool
	missing  []position // that something behind them came before, so far without them
}

func (c *check) call(n int, k *Call) {
	w := &walk{check: c, call: n, c: k, state: c.fresh()}
	start := k.Request.GetCursor()
	var resumed bool
	switch {
	case start != nil:
		if w.state, resumed = c.known[keyOf(start)]; !resumed {
			w.state = c.fresh()
			w.at, w.blind = positionOf(start), true
			w.late.assume(w.at.line)
		}
		w.late = w.late.clone()
	case k.Request.GetLastLines() > 0, k.Request.GetPosition() == evev1.Position_POSITION_TAIL:
		w.relative = true
	}
	w.begin = w.at
	if k.Forged {
		w.forged()
		return
	}
	for i, m := range k.Messages {
		w.message = i
		w.take(m)
	}
	w.message = len(k.Messages)
	w.close(resumed)
}

// forged checks a call with an anchor that is not that of the line before the cursor: nothing comes but signs of life,
// and then the refusal.
func (w *walk) forged() {
	for i, m := range w.c.Messages {
		switch m.GetCheckpoint().GetReason() {
		case evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT, evev1.CheckpointReason_CHECKPOINT_REASON_DRAINING,
			evev1.CheckpointReason_CHECKPOINT_REASON_VERSION_CHANGED:
			if proto.Equal(m.GetCursor(), w.c.Request.GetCursor()) {
				continue
			}
		default:
		}
		w.message = i
		w.violate(ErrVerified, "a message although the line before the cursor is another one than the cursor says")
		return
	}
	w.message = len(w.c.Messages)
	if reason := Reason(w.c.Err); w.c.Err == nil || reason != "CURSOR_DIVERGED" && refusesCursor(reason) && !w.changed(reason) {
		w.violate(ErrVerified, "a cursor of another history is answered with %v %s", status.Code(w.c.Err), reason)
	}
}

// fresh is the state of a client that has consumed nothing.
func (c *check) fresh() state {
	s := state{agree: 1<<len(c.histories) - 1}
	if c.session.Late > 0 {
		s.late = newLateness(c.histories[0].Len())
	}
	return s
}

// keyOf identifies a cursor by all it says.
func keyOf(c *evev1.Cursor) string {
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil { // not UTF-8: no cursor that the gateway could have sent
		return ""
	}
	return string(key)
}

func (w *walk) violate(guarantee error, format string, args ...any) {
	w.found = append(w.found, Violation{
		Guarantee: guarantee, Call: w.call, Message: w.message, Detail: fmt.Sprintf(format, args...),
	})
}

// history is the one to compare with: of those that agree with what was delivered, the oldest.
func (w *walk) history() *history {
	return w.histories[min(bits.TrailingZeros64(w.agree), len(w.histories)-1)]
}

// take checks one message.
func (w *walk) take(m *evev1.SubscribeResponse) {
	if w.ended {
		w.violate(ErrAtomicEnd, "a message behind the ENDED checkpoint")
	}
	w.identity(m.GetCursor())
	w.size(m)
	it, isItem := itemOf(m)
	switch {
	case w.late != nil && isItem:
		w.lateItem(&it, m.GetCursor())
	case w.late != nil:
		w.lateCheckpoint(m)
	case isItem:
		w.item(&it, m.GetCursor())
	default:
		w.checkpoint(m)
	}
	w.anchor(m.GetCursor())
	w.known[keyOf(m.GetCursor())] = state{at: w.at, agree: w.agree, blind: w.blind, late: w.late.clone()}
}

// identity checks what a cursor is of, and that it can be sent back.
func (w *walk) identity(c *evev1.Cursor) {
	s := w.session
	if c.GetAgent() != s.Agent || c.GetSessionId() != s.ID || !proto.Equal(c.GetChild(), s.Child) {
		w.violate(ErrIsolated, "the cursor is of %s/%s", c.GetAgent(), c.GetSessionId())
	}
	if _, err := cursor.FromProto(c); err != nil {
		w.violate(ErrResumable, "no cursor to resume from: %v", err)
	}
}

// The limit of requests that name none (api.md section 3).
const defaultMessageBytes = 4 << 20

func (w *walk) size(m *evev1.SubscribeResponse) {
	limit := int(w.c.Request.GetMaxMessageBytes())
	if limit == 0 {
		limit = defaultMessageBytes
	}
	if n := proto.Size(m); n > limit {
		w.violate(ErrBounded, "a message of %d bytes, asked for at most %d", n, limit)
	}
}

// item checks a record or an unreadable line, and the cursor behind it.
func (w *walk) item(it *item, c *evev1.Cursor) {
	if w.relative {
		w.violate(ErrBookmarkable, "%v before the start was told", it)
		w.relative, w.at, w.begin = false, it.at, it.at
	}
	w.belongs(it)
	_ = w.agreeing(func(h *history) string { // a record that says little may be of more than one history
		if it.at.line < h.Len() && w.behind(h, it) == positionOf(c) {
			return ""
		}
		return "another cursor"
	})
	h := w.history()
	if it.at.line >= h.Len() {
		return
	}
	next := w.behind(h, it)
	switch {
	case !it.at.before(w.at):
		w.lack(w.at, it.at)
		w.at = next
	case w.remembered(it.at):
		w.violate(ErrOrdered, "%v comes behind what is stored behind it", it)
		return
	default:
		w.violate(ErrUnique, "%v comes again: everything before %v was consumed", it, w.at)
		return
	}
	w.blind = it.tooLarge
	if h.terminal >= 0 && it.at.line > h.terminal {
		w.violate(ErrAtomicEnd, "%v lies behind the end of the session in line %d", it, h.terminal)
	}
	w.content(it)
	if got := positionOf(c); got != next {
		w.violate(ErrBookmarkable, "%v comes with a cursor at %v, want %v", it, got, next)
	} else if it.endOfLine != (next.slot == 0) {
		w.violate(ErrBookmarkable, "%v says end of line %t, its cursor says otherwise", it, it.endOfLine)
	}
}

// belongs finds the histories that hold the item, and reports one that is held by none or by another one than what
// came before.
func (w *walk) belongs(it *item) {
	var hold uint64
	elsewhere := false
	for n, h := range w.histories {
		if it.at.line < h.Len() && it.is(h.Entry(it.at.line), it.at.slot) {
			hold |= 1 << n
		} else if hold == 0 && !elsewhere {
			elsewhere = h.holds(it)
		}
	}
	switch {
	case hold == 0 && elsewhere:
		w.violate(ErrVerified, "%v is not what is stored there: it is stored elsewhere in the session", it)
	case hold == 0:
		w.violate(ErrIsolated, "%v is stored nowhere in the session", it)
	case hold&w.agree == 0:
		w.violate(ErrVerified, "%v is of another history than what was delivered before", it)
		w.agree = hold
	default:
		w.agree &= hold
	}
}

// holds tells whether the item is stored anywhere. One that says nothing of itself but a type is not looked for.
func (h *history) holds(it *item) bool {
	if it.text == "" && it.id == "" {
		return true
	}
	for i := range h.Len() {
		e := h.Entry(i)
		for slot := range slots(e) {
			if it.is(e, slot) {
				return true
			}
		}
	}
	return false
}

// behind is the position of a cursor behind a record: in its line, unless no wanted record follows there.
func (w *walk) behind(h *history, it *item) position {
	e := h.Entry(it.at.line)
	for slot := it.at.slot + 1; slot < slots(e) && it.kind == fakeeve.Commit; slot++ {
		if passes(w.c.Request.GetFilter(), e, slot) {
			return position{it.at.line, it.at.slot + 1}
		}
	}
	return position{it.at.line + 1, 0}
}

// wanted yields what must have been delivered or reported between two positions: wanted records, and the starts of
// lines that the server skipped.
func (w *walk) wanted(h *history, from, to position, yield func(position)) {
	for line := from.line; line < h.end() && (line < to.line || line == to.line && to.slot > 0); line++ {
		e := h.Entry(line)
		if e.Kind == fakeeve.Skipped {
			yield(position{line, 0})
			continue
		}
		for slot := range slots(e) {
			p := position{line, slot}
			if !p.before(from) && p.before(to) && passes(w.c.Request.GetFilter(), e, slot) {
				yield(p)
			}
		}
	}
}

// lack remembers what should have come between two positions: it may still come, which is bad in another way.
func (w *walk) lack(from, to position) {
	_ = w.agreeing(func(h *history) (problem string) { // here, too
		w.wanted(h, from, to, func(position) { problem = "a gap" })
		return problem
	})
	w.wanted(w.history(), from, to, func(p position) { w.missing = append(w.missing, p) })
}

// remembered takes a position off the list of the missing.
func (w *walk) remembered(p position) bool {
	for i, m := range w.missing {
		if m == p {
			w.missing = append(w.missing[:i], w.missing[i+1:]...)
			return true
		}
	}
	return false
}

// content checks that what was asked for of a record is there.
func (w *walk) content(it *item) {
	if it.text != "" || it.omitted || it.kind == fakeeve.Unreadable {
		return
	}
	switch w.c.Request.GetPayload() {
	case evev1.Payload_PAYLOAD_NONE, evev1.Payload_PAYLOAD_TYPED:
	default:
		w.violate(ErrGapless, "%v comes without its content, and does not say so", it)
	}
}

// agreeing narrows the histories to those that have no problem with something. With none left it returns the problem of
// the oldest, and the histories stay.
func (w *walk) agreeing(problem func(*history) string) string {
	var left uint64
	first := ""
	for n, h := range w.histories {
		if w.agree&(1<<n) == 0 {
			continue
		}
		switch p := problem(h); {
		case p == "":
			left |= 1 << n
		case first == "":
			first = p
		}
	}
	if left == 0 {
		return first
	}
	w.agree = left
	return ""
}

// claim checks a cursor that comes without a record: it moves over nothing that is wanted.
func (w *walk) claim(to position, guarantee error, who string) {
	if to.before(w.at) {
		w.violate(guarantee, "%s goes back from %v to %v", who, w.at, to)
		return
	}
	problem := w.agreeing(func(h *history) string {
		n, first := 0, position{}
		w.wanted(h, w.at, to, func(p position) {
			if n == 0 {
				first = p
			}
			n++
		})
		switch {
		case n > 0:
			return fmt.Sprintf("%s stands at %v, but %d records or skipped lines from %v on were neither delivered nor reported", who, to, n, first)
		case to.line > h.Len():
			return fmt.Sprintf("%s stands at %v, behind the last stored line %d", who, to, h.Len()-1)
		}
		return ""
	})
	if problem != "" {
		w.violate(guarantee, "%s", problem)
	}
	w.at = to
}

// checkpoint checks a message without a record.
func (w *walk) checkpoint(m *evev1.SubscribeResponse) {
	c := m.GetCheckpoint()
	at := positionOf(m.GetCursor())
	if w.relative && c.GetReason() != evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED {
		w.violate(ErrBookmarkable, "a checkpoint before the start was told")
		w.relative, w.at, w.begin = false, at, at
	}
	switch c.GetReason() {
	case evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED:
		w.positioned(at)
	case evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED:
		w.skipped(c.GetSkipped(), at)
	case evev1.CheckpointReason_CHECKPOINT_REASON_ENDED:
		w.end(c.GetEnd(), m.GetCursor())
	default:
		w.claim(at, ErrBookmarkable, "the checkpoint")
		if c.CaughtUpLine != nil && at.line <= number(c.GetCaughtUpLine()) {
			w.violate(ErrBookmarkable, "caught up with line %d at %v", c.GetCaughtUpLine(), at)
		}
	}
}

// positioned checks where a relative read begins.
func (w *walk) positioned(at position) {
	switch {
	case !w.relative || w.message > 0:
		w.violate(ErrBookmarkable, "a start that was not asked for is told")
		return
	case at.slot > 0:
		w.violate(ErrBookmarkable, "the start %v is inside a line", at)
	case w.c.Known && at.line < w.c.Tail+1-int64(w.c.Request.GetLastLines()):
		w.violate(ErrBookmarkable, "the read starts at %v, the tail was %d", at, w.c.Tail)
	}
	w.relative, w.at, w.begin, w.blind = false, at, at, true
}

// skipped checks a report of lines that the server does not have any more.
func (w *walk) skipped(r *evev1.SourceRange, at position) {
	from := position{number(r.GetFromLine()), int64(r.GetFromRecordIndex())}
	to := position{number(r.GetToLine()), 0}
	switch {
	case from.before(w.at):
		w.violate(ErrBookmarkable, "lines from %v on are said to be skipped, everything before %v was consumed", from, w.at)
	default:
		w.lack(w.at, from)
	}
	if at != to || to.line <= from.line {
		w.violate(ErrBookmarkable, "%v to %v was skipped, and the cursor stands at %v", from, to, at)
	}
	for line := max(from.line, w.at.line); line < min(to.line, w.history().Len()); line++ {
		if w.history().Entry(line).Kind != fakeeve.Skipped && (w.session.Trimmed == nil || !w.session.Trimmed(line)) {
			w.violate(ErrGapless, "line %d is said to be skipped, but it is there", line)
			break
		}
	}
	w.at, w.blind, w.agree = position{max(to.line, at.line), 0}, true, 1<<len(w.histories)-1
}

// anchor checks that the position behind a message can be verified when it is resumed.
func (w *walk) anchor(c *evev1.Cursor) {
	if c.GetAnchor() != "" || w.relative {
		return
	}
	last := int64(-1)
	switch at := positionOf(c); {
	case at.slot > 0:
		last = at.line
	case at.line > 0:
		last = at.line - 1
	}
	h := w.history()
	if last < w.begin.line || w.blind || last >= h.Len() || w.late != nil {
		return
	}
	e := h.Entry(last)
	switch {
	case e.Kind == fakeeve.Skipped,
		w.session.Trimmed != nil && w.session.Trimmed(last),
		w.session.MaxLineBytes > 0 && len(e.Raw) > w.session.MaxLineBytes:
	default:
		w.violate(ErrVerified, "the cursor at %v has no anchor, so that nobody can tell whether line %d is still the same", positionOf(c), last)
	}
}

// close checks how the call ended.
func (w *walk) close(resumed bool) {
	if len(w.missing) > 0 {
		w.violate(ErrGapless, "%d records or skipped lines did not come and nothing was said, the first at %v", len(w.missing), w.missing[0])
	}
	if w.session.MaxHeld > 0 && w.c.Held > w.session.MaxHeld {
		w.violate(ErrBounded, "%d bytes were taken from the server while the client took none, at most %d were expected", w.c.Held, w.session.MaxHeld)
	}
	if w.c.Left {
		return
	}
	reason := Reason(w.c.Err)
	switch {
	case w.c.Err == nil && !w.ended:
		w.violate(ErrGapless, "the status is OK, and no ENDED checkpoint came")
	case resumed && refusesCursor(reason) && !w.changed(reason):
		w.violate(ErrResumable, "a cursor at %v that was handed out is refused with %s", w.begin, reason)
	}
}

// refusesCursor tells whether a reason says that a position cannot be read from, now or ever.
func refusesCursor(reason string) bool {
	switch reason {
	case "CURSOR_INVALID", "CURSOR_AHEAD", "CURSOR_DIVERGED", "HISTORY_EXPIRED", "STREAM_VERSION_CHANGED":
		return true
	}
	return false
}

// changed tells whether something happened that justifies to refuse the position the call has reached.
func (w *walk) changed(reason string) bool {
	if reason == "STREAM_VERSION_CHANGED" {
		return w.session.Crossed
	}
	last := w.histories[len(w.histories)-1]
	for _, h := range w.histories[:len(w.histories)-1] {
		if reason != "CURSOR_INVALID" && common(h, last) < w.consumed(h) {
			return true
		}
	}
	return false
}

// consumed is how many lines of a history the gateway may have consumed when nothing more came: those in which nothing
// is wanted count.
func (w *walk) consumed(h *history) int64 {
	to := w.at
	for to.line < h.Len() && (to.slot > 0 || !w.wants(h.Entry(to.line))) {
		to = position{to.line + 1, 0}
	}
	return to.line
}

// wants tells whether anything of a line is wanted.
func (w *walk) wants(e fakeeve.Entry) bool {
	for slot := range slots(e) {
		if passes(w.c.Request.GetFilter(), e, slot) {
			return true
		}
	}
	return false
}

// Reason is the reason of an error of the gateway: a name of eve.v1.ErrorReason without its prefix, empty when the
// error has none.
func Reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}
