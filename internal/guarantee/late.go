package guarantee

import (
	"slices"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// lateness is what is known of each line where events may be told out of their stored order. Nil where they may not.
type lateness struct {
	// came: it was delivered. excused: it need not be, since a filter may have left it out.
	came, excused []bool
}

func newLateness(lines int64) *lateness {
	return &lateness{came: make([]bool, lines), excused: make([]bool, lines)}
}

func (l *lateness) clone() *lateness {
	if l == nil {
		return nil
	}
	return &lateness{came: slices.Clone(l.came), excused: slices.Clone(l.excused)}
}

// assume takes the first n lines for consumed, or not.
func (l *lateness) assume(n int64) {
	if l != nil {
		for i := range min(n, int64(len(l.excused))) {
			l.excused[i] = true
		}
	}
}

// lateItem is item where events may be late: w.at.line events were consumed, it is not known which.
func (w *walk) lateItem(it *item, c *evev1.Cursor) {
	before := positionOf(c).line - 1 // how many were consumed before it, by what the cursor says
	line, again := w.recognise(it, before)
	switch {
	case line < 0 && again:
		w.violate(ErrUnique, "%v comes again", it)
		return
	case line < 0:
		w.violate(ErrIsolated, "%v is stored nowhere in the session", it)
		return
	case line < before-w.session.Late, line > before+w.session.Late:
		w.violate(ErrOrdered, "%v, which is stored as line %d, comes after %d others", it, line, before)
	}
	w.late.came[line] = true
	w.content(it)
	w.advance(positionOf(c), w.at.line+1, it.String())
}

// recognise finds the line that an item is: of several that say the same, the nearest that did not come yet. again
// tells that all of them did.
func (w *walk) recognise(it *item, near int64) (line int64, again bool) {
	h := w.history()
	line = -1
	for i := range h.Len() {
		switch {
		case !it.is(h.Entry(i), 0):
		case w.late.came[i]:
			again = true
		case line < 0 || abs(i-near) < abs(line-near):
			line = i
		}
	}
	return line, again
}

func abs(n int64) int64 { return max(n, -n) }

// advance moves to a cursor, which stands at least at line least.
func (w *walk) advance(to position, least int64, who string) {
	if to.slot > 0 || to.line < least || to.line > w.history().Len() {
		w.violate(ErrBookmarkable, "%s stands at %v, want at least %d", who, to, least)
		return
	}
	w.excuse(to.line)
	w.at = to
	behind := to.line - w.session.Late
	if to.line >= w.history().end() {
		behind = w.history().end()
	}
	w.complete(behind)
}

// excuse excuses what the filter of this call may have left out on the way to a line.
func (w *walk) excuse(to int64) {
	h := w.history()
	for i := max(0, w.at.line-w.session.Late); i < min(h.Len(), to+w.session.Late); i++ {
		if !passes(w.c.Request.GetFilter(), h.Entry(i), 0) {
			w.late.excused[i] = true
		}
	}
}

// complete checks that nothing before a line is missing.
func (w *walk) complete(before int64) {
	n, first := 0, int64(0)
	for i := range min(before, w.history().Len()) {
		if w.late.came[i] || w.late.excused[i] {
			continue
		}
		if w.late.excused[i] = true; n == 0 {
			first = i
		}
		n++
	}
	if n > 0 {
		w.violate(ErrGapless, "%d events did not come and nothing was said, the first is line %d", n, first)
	}
}

// lateCheckpoint is checkpoint where events may be late.
func (w *walk) lateCheckpoint(m *evev1.SubscribeResponse) {
	c := m.GetCheckpoint()
	at := positionOf(m.GetCursor())
	switch c.GetReason() {
	case evev1.CheckpointReason_CHECKPOINT_REASON_POSITIONED:
		w.positioned(at)
		w.late.assume(at.line)
		return
	case evev1.CheckpointReason_CHECKPOINT_REASON_ENDED:
		w.end(c.GetEnd(), m.GetCursor())
		return
	default:
	}
	w.advance(at, w.at.line, "the checkpoint")
	if c.CaughtUpLine != nil && at.line <= number(c.GetCaughtUpLine()) {
		w.violate(ErrBookmarkable, "caught up with line %d at %v", c.GetCaughtUpLine(), at)
	}
}

// lateEnd is what end does where events may be late: at the end of the session none of them is any more.
func (w *walk) lateEnd(why evev1.EndReason, at position) {
	w.advance(at, w.at.line, "the end")
	if why == evev1.EndReason_END_REASON_SESSION_ENDED {
		w.complete(w.history().end())
	}
}
