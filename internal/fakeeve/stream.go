package fakeeve

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The transport records (contract 2.4, 5.2).
const (
	heartbeatRecord = `{"$eve":"heartbeat"}`
	leaseRecord     = `{"$eve":"stream.lease-ended"}`
	leaseRecord26   = `{"$eve":"stream.lease-ended","version":1}`
	endedRecord     = `{"$eve":"stream.ended"}`
)

// serveStream answers R9 and R10 (contract 1.9, 1.10).
func (s *Server) serveStream(x *exchange, t target) {
	if t.badID {
		x.answer(http.StatusServiceUnavailable, refusal{Error: "Session stream unavailable."})
		return
	}
	query, ok := ParseStreamQuery(x.r.URL.Query())
	if !ok {
		x.answer(http.StatusBadRequest, refusal{Error: "Expected startIndex to be an integer."})
		return
	}

	s.mu.Lock()
	if t.route == RouteSubagent && !s.relays(t, &query) {
		s.mu.Unlock()
		x.answer(http.StatusNotFound, refusal{Error: "Subagent stream not found."})
		return
	}
	sess, script := s.sessions[t.session], s.scripts[t.session]
	conn := Conn{Session: t.session, N: s.ledger.connect(x.rec), Query: query, Start: -1, Tail: -1, Request: x.r}
	if sess != nil {
		conn.Start, conn.Tail = sess.resolve(query)
	}
	s.mu.Unlock()
	if script != nil {
		x.fault = script(conn)
	}
	if !x.begin(x.fault) {
		return
	}
	fault := x.fault
	x.fault = Fault{} // it is for the stream, not for a refusal

	s.mu.Lock()
	sess = s.sessions[t.session]
	var spec SessionSpec
	var expired bool
	if sess != nil {
		spec, expired = sess.spec, sess.expired
	}
	s.mu.Unlock()
	if spec.OpenCost > 0 && !pause(x.ctx, spec.OpenCost*time.Duration(spec.Log.Len())) {
		s.ledger.note(x.rec, func(rec *Request) { rec.End = EndGone })
		return
	}

	follow := spec.Quirks.IgnoresFollow || !query.NoFollow
	withTail := query.IncludeTailIndex || !follow
	switch {
	case sess == nil:
		x.answer(http.StatusNotFound, refusal{Error: "Session not found."})
		return
	case expired:
		x.refuse(http.StatusGone, "session_expired", "Session history is no longer available.")
		return
	case spec.Stranded != "" && follow:
		x.w.Header().Set("Cache-Control", "no-store")
		x.answer(http.StatusConflict, refusal{
			Code: "session_stranded", Error: "This session is no longer available.", EveVersion: spec.Stranded,
		})
		return
	}

	s.mu.Lock()
	start, tail := sess.resolve(query)
	var replay *TranscriptFile
	if fault.Verbatim == nil {
		replay = sess.replay(start)
	}
	s.mu.Unlock()

	version := spec.Version
	if fault.Version != 0 {
		version = fault.Version
	}
	h := x.w.Header()
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("Content-Type", "application/x-ndjson; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Eve-Session-Id", t.session)
	h.Set("X-Eve-Stream-Format", "ndjson")
	headerText(h, "X-Eve-Stream-Version", strconv.Itoa(version), fault.VersionHeader)
	if withTail {
		headerText(h, "X-Eve-Stream-Tail-Index", strconv.FormatInt(tail, 10), fault.TailHeader)
	}
	maps.Copy(h, fault.Header)

	b := newBody(x, fault, version)
	b.log, b.start, b.tail, b.honoursAhead = spec.Log, start, tail, spec.Quirks.HonoursAhead
	b.bounded = !follow || query.IncludeTailIndex && !spec.Quirks.TailInformational
	if version >= 27 || query.Control {
		b.lease, b.heartbeat = s.cfg.lease, s.cfg.heartbeat
	}
	if fault.Lease != 0 {
		b.lease = fault.Lease
	}
	if fault.Heartbeat != 0 {
		b.heartbeat = fault.Heartbeat
	}
	s.ledger.note(x.rec, func(rec *Request) {
		rec.Status, rec.From, rec.Following = http.StatusOK, start, !b.bounded
	})
	s.ledger.opened(b)
	defer s.ledger.closed(b)
	b.run(replay)
}

// relays tells whether the parent's stream of target t leads to that child, and takes from the query what the relay
// does not pass on. The caller holds the mutex.
func (s *Server) relays(t target, query *StreamQuery) bool {
	parent := s.sessions[t.parent]
	if parent == nil {
		return false
	}
	if !parent.spec.Quirks.ForwardsFollow {
		query.NoFollow = false
	}
	return slices.Contains(parent.spec.Children, Child{CallID: t.call, SessionID: t.session})
}

// run sends the body and ends it. It does not return when the end is a hard one.
func (b *body) run(replay *TranscriptFile) {
	defer b.cancel()
	b.w.WriteHeader(http.StatusOK)
	var err error
	switch {
	case b.fault.Verbatim != nil:
		b.lease, b.heartbeat = 0, 0
		err = b.verbatim(b.fault.Verbatim)
	case replay != nil:
		b.lease, b.heartbeat = 0, 0
		err = b.replay(replay)
	default:
		err = b.stored()
	}
	end, how := b.result(err)
	b.ledger.note(b.rec, func(rec *Request) { rec.End = end })
	if end == EndCut && how != Clean {
		disconnect(b.rc, how)
	}
}

// endError is how the sending of a body stops; its text is the end.
type endError End

func (e endError) Error() string { return "fakeeve: body ended: " + string(e) }

// result says how the body ended, and how a cut one was cut.
func (b *body) result(err error) (End, How) {
	if cut := (cutError{}); errors.As(err, &cut) {
		return EndCut, cut.how
	}
	if end := endError(""); errors.As(err, &end) {
		if err := b.flush(); err != nil {
			return b.result(err)
		}
		return End(end), Clean
	}
	return EndGone, Clean
}

// verbatim sends raw bytes and nothing else.
func (b *body) verbatim(raw []byte) error {
	if _, err := b.buf.Write(raw); err != nil {
		return err
	}
	return endError(EndVerbatim)
}

// replay sends a transcript byte for byte, with the stored lines before it that were asked for.
func (b *body) replay(f *TranscriptFile) error {
	for i, l := range f.bodyLines() {
		if l.line < 0 {
			if err := b.control(string(l.raw)); err != nil {
				return err
			}
		} else if err := b.line(l.line, l.raw); err != nil {
			return err
		}
		if i == 0 && openingLine(l.raw) {
			if err := b.earlier(f.Start); err != nil {
				return err
			}
		}
	}
	return endError(EndVerbatim)
}

// earlier sends the stored lines from the start asked for to before.
func (b *body) earlier(before int64) error {
	next := b.start
	skipped := false
	for ; next < before; next++ {
		if err := b.storedLine(next, &skipped); err != nil {
			return err
		}
	}
	return b.position(next, &skipped)
}

// stored sends stored lines: to the tail of the opening when the body is bounded, else as they come.
func (b *body) stored() error {
	if err := b.beat(); err != nil {
		return err
	}
	next := b.start
	hang := false
	if !b.bounded && next > b.log.Len() && !b.honoursAhead {
		_, hang = watch(b.log) // contract O3
		next = b.log.Len()
	}
	live := b.log.Len() // lines from here on are sent as they come
	skipped := false
	for {
		changed, ended := watch(b.log)
		length := b.log.Len()
		limit := length
		if b.bounded {
			limit = min(limit, b.tail+1)
		}
		for next < limit {
			if err := b.check(); err != nil {
				return err
			}
			if next >= live && b.fault.Late != nil {
				if err := b.storedLate(next); err != nil {
					return err
				}
			} else if err := b.storedLine(next, &skipped); err != nil {
				return err
			}
			next++
		}
		if err := b.position(next, &skipped); err != nil {
			return err
		}
		if b.bounded && next > b.tail {
			return endError(EndBound)
		}
		if ended && next >= length && !hang {
			if err := b.releaseLate(next, true); err != nil {
				return err
			}
			if b.version >= 27 {
				if err := b.control(endedRecord); err != nil {
					return err
				}
			}
			return endError(EndStream)
		}
		if hang {
			changed = nil
		}
		if err := b.rest(changed, Forever); err != nil {
			return err
		}
	}
}

// storedLine sends a stored line, or remembers that it was skipped.
func (b *body) storedLine(i int64, skipped *bool) error {
	var raw []byte
	if a, ok := b.log.(appender); ok {
		b.scratch = a.appendLine(b.scratch[:0], i)
		raw = b.scratch
	} else if raw = b.log.Line(i); raw == nil {
		*skipped = true
		return nil
	}
	if err := b.position(i, skipped); err != nil {
		return err
	}
	return b.line(i, raw)
}

// position names the next line when lines before it were skipped.
func (b *body) position(next int64, skipped *bool) error {
	if !*skipped {
		return nil
	}
	*skipped = false
	return b.control(`{"$eve":"position","next":` + strconv.FormatInt(next, 10) + `}`)
}

// lateLine is a line that waits for others.
type lateLine struct {
	line  int64
	after int64 // it is sent behind this line
	since time.Time
}

// storedLate sends line i unless it is to be late, and after it those that waited for it.
func (b *body) storedLate(i int64) error {
	if places := b.fault.Late(i); places > 0 {
		b.late = append(b.late, lateLine{line: i, after: i + int64(places), since: time.Now()})
		return nil
	}
	skipped := false
	if err := b.storedLine(i, &skipped); err != nil {
		return err
	}
	return b.releaseLate(i, false)
}

// releaseLate sends the late lines whose place has come: behind line i, or all of them.
func (b *body) releaseLate(i int64, all bool) error {
	kept := b.late[:0]
	for n, l := range b.late {
		if !all && l.after > i && time.Since(l.since) < lateAtMost {
			kept = append(kept, l)
			continue
		}
		skipped := false
		if err := b.storedLine(l.line, &skipped); err != nil {
			b.late = append(kept, b.late[n+1:]...)
			return err
		}
	}
	b.late = kept
	return nil
}
