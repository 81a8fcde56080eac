package contract_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/gateway"
	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// session is the id of the only session of a case.
const session = "wrun_1"

// contractCase is one promise: a scripted session, the Subscribe calls made one after the other, and for each what
// the client gets and what Eve is asked.
type contractCase struct {
	name string

	// lines are stored when the case begins. Unless open, the stored stream is closed behind them.
	lines []string
	open  bool
	// log replaces lines and open.
	log fakeeve.Log
	// version of the stream; 0: 27.
	version int
	// quirks of the server.
	quirks fakeeve.Quirks
	// stranded is the eve version that owns the session and is gone; empty: it is not stranded.
	stranded string
	// script gives the n-th connection the n-th fault, over all calls.
	script []fakeeve.Fault
	// always is what goes wrong with every connection; it excludes script.
	always fakeeve.Script
	// eve, config and source set up the rig.
	eve    []fakeeve.Option
	config func(*gateway.Config)
	source func(*source.Config)

	calls []call

	// rewritten: bodies do not say what is stored, or what is stored changes while it is read, so that records
	// cannot be compared with the log.
	rewritten bool
}

// call is one Subscribe, and what must come of it.
type call struct {
	// before happens at Eve before the call.
	before func(*fakeeve.Session)
	// ask makes the request from the cursor of the last message of the call before. Nil: resume there; for the first
	// call, read from the beginning.
	ask func(last *evev1.Cursor) *evev1.SubscribeRequest
	// during happens while the call runs.
	during []moment
	// leave is when the client goes away; 0: it stays.
	leave time.Duration
	// stop is the number of messages after which it goes away; 0: it stays.
	stop int

	// want are the messages (see textOf). With timed, each says when it came.
	want  []string
	timed bool
	// reads are the requests for the session's stream: "tail N" for a bounded read from line N, "live N" for a
	// following one, with the status when it is not 200, and when it came. Nil: not checked. With stop, more may follow:
	// the gateway is ahead of a client that is about to leave.
	reads []string
	// status the call ends with (see statusOf). Empty: OK, or the client's own leaving.
	status string
}

// moment is something that happens at Eve a while after a call was made.
type moment struct {
	after time.Duration
	do    func(*fakeeve.Session)
}

// forever is far behind anything a case waits for: what still runs then would run for ever.
const forever = time.Hour

// none says that Eve was asked nothing.
func none() []string { return []string{} }

func runCases(t *testing.T, cases []contractCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t) })
		})
	}
}

func (c *contractCase) run(t *testing.T) {
	t.Helper()
	r := rig.New(t, c.options())
	defer r.Close()
	s := r.Eve.AddSession(session, c.spec())
	script := c.always
	if script == nil {
		script = fakeeve.Faults(c.script...)
	}
	r.Eve.Script(session, limited(t, script))
	var last *evev1.Cursor
	for i := range c.calls {
		last = c.call(t, r, s, &c.calls[i], last, fmt.Sprintf("call %d", i))
	}
}

// limited stops a reader that opens one connection after the other without end: no time passes while it does.
func limited(t *testing.T, script fakeeve.Script) fakeeve.Script {
	return func(c fakeeve.Conn) fakeeve.Fault {
		if c.N < 1000 {
			return script(c)
		}
		if c.N == 1000 {
			t.Error("the gateway opened 1000 connections")
		}
		return fakeeve.Fault{Delay: fakeeve.Forever}
	}
}

func (c *contractCase) spec() fakeeve.SessionSpec {
	spec := fakeeve.SessionSpec{Version: c.version, Log: c.log, Quirks: c.quirks, Stranded: c.stranded}
	if spec.Log == nil {
		log := fakeeve.NewMemLog(c.lines...)
		if !c.open {
			log.End()
		}
		spec.Log = log
	}
	return spec
}

// options make everything a matter of the case alone: no jitter, and no heartbeat that it does not ask for.
func (c *contractCase) options() rig.Options {
	return rig.Options{
		Eve: c.eve,
		Config: func(cfg *gateway.Config) {
			cfg.Heartbeat, cfg.HeartbeatMax = 2*forever, 2*forever
			if c.config != nil {
				c.config(cfg)
			}
		},
		Source: func(cfg *source.Config) {
			cfg.Rand = func() float64 { return 0 }
			if c.source != nil {
				c.source(cfg)
			}
		},
	}
}

// call makes a call, checks it, and returns the cursor of its last message, or of the request if there was none.
func (c *contractCase) call(t *testing.T, r *rig.Rig, s *fakeeve.Session, k *call, last *evev1.Cursor, name string) *evev1.Cursor {
	t.Helper()
	if k.before != nil {
		k.before(s)
	}
	req := rig.FromStart(session)
	switch {
	case k.ask != nil:
		req = k.ask(last)
	case last != nil:
		req = rig.From(last)
	}
	asked := len(r.Eve.StreamRequests(session))
	began := time.Now()
	res, left := subscribe(t, r, s, req, k)
	synctest.Wait()

	o := observed{began: began, result: res, left: left, timed: k.timed, version: c.streamVersion()}
	if diff := cmp.Diff(k.want, o.messages()); diff != "" {
		t.Errorf("%s: messages (-want +got):\n%s", name, diff)
	}
	if got := o.status(); got != k.status && (k.status != "" || (got != "OK" && !left)) {
		t.Errorf("%s: status %q (%v), want %q", name, got, res.Err, k.status)
	}
	if k.reads != nil {
		reads := readsOf(r.Eve.StreamRequests(session)[asked:], began)
		if k.stop > 0 {
			reads = reads[:min(len(reads), len(k.reads))]
		}
		if diff := cmp.Diff(k.reads, reads); diff != "" {
			t.Errorf("%s: requests made upstream (-want +got):\n%s", name, diff)
		}
	}
	if n := r.Eve.OpenBodies(); n != 0 {
		t.Errorf("%s: %d bodies are still open upstream", name, n)
	}
	checkMessages(t, name, req, res)
	checkStatus(t, name, res, left)
	if !c.rewritten {
		checkRecords(t, name, s.Log(), c.streamVersion(), res.Records())
	}
	if m := res.Last(); m != nil {
		return m.GetCursor()
	}
	return req.GetCursor()
}

func (c *contractCase) streamVersion() int {
	if c.version == 0 {
		return 27
	}
	return c.version
}

// subscribe makes the call of a case; left tells that it was the client who ended it.
func subscribe(t *testing.T, r *rig.Rig, s *fakeeve.Session, req *evev1.SubscribeRequest, k *call) (res rig.Result, left bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var gone atomic.Bool
	leave := func() { gone.Store(true); cancel() }
	timers := make([]*time.Timer, 0, len(k.during))
	for _, m := range k.during {
		timers = append(timers, time.AfterFunc(m.after, func() { m.do(s) }))
	}
	defer func() {
		for _, timer := range timers {
			timer.Stop()
		}
	}()
	if k.leave > 0 {
		defer time.AfterFunc(k.leave, leave).Stop()
	}
	defer time.AfterFunc(forever, func() { t.Error("the call would go on for ever"); cancel() }).Stop()
	seen := 0
	res = r.Subscribe(ctx, req, func(*evev1.SubscribeResponse) bool {
		if seen++; seen != k.stop {
			return false
		}
		leave()
		return true
	})
	return res, gone.Load()
}

// observed turns what came of a call into text.
type observed struct {
	began   time.Time
	result  rig.Result
	left    bool
	timed   bool
	version int
}

func (o *observed) messages() []string {
	var out []string
	for i, m := range o.result.Messages {
		text := textOf(m, uint32(o.version))
		if at := o.result.At[i].Sub(o.began); o.timed && at > 0 {
			text += " +" + at.String()
		}
		out = append(out, text)
	}
	return out
}

func (o *observed) status() string {
	if o.left {
		return "LEFT"
	}
	return statusOf(o.result.Err)
}

// textOf is a message in a line: what it is, where it stands ("2.1": slot 1 of line 2), its type, and the cursor:
//
//	fact 2.1 turn.started @2.2
//	progress 3 content.delta @4
//	unreadable 4 INVALID_JSON @5
//	SOURCE_SKIPPED 5..9 @9?
//	CAUGHT_UP 12 @13
//	ENDED SESSION_ENDED @14 ended
//
// A cursor has "?" when a position behind the beginning has no anchor, "ended" when the session's end is consumed,
// and its version when that is not the one given.
func textOf(m *evev1.SubscribeResponse, version uint32) string {
	return itemText(m) + " " + cursorText(m.GetCursor(), version)
}

func itemText(m *evev1.SubscribeResponse) string {
	switch item := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		f := item.Fact
		return fmt.Sprintf("fact %d.%d %s%s", f.GetSource().GetLine(), f.GetSource().GetRecordIndex(), f.GetType(), omittedText(f.GetOmitted()))
	case *evev1.SubscribeResponse_Progress:
		p := item.Progress
		return fmt.Sprintf("progress %d %s%s", p.GetSource().GetLine(), p.GetType(), omittedText(p.GetOmitted()))
	case *evev1.SubscribeResponse_Event:
		e := item.Event
		return fmt.Sprintf("event %d %s%s", e.GetSource().GetLine(), e.GetType(), omittedText(e.GetOmitted()))
	case *evev1.SubscribeResponse_UnreadableLine:
		u := item.UnreadableLine
		return fmt.Sprintf("unreadable %d %s", u.GetSource().GetLine(), strings.TrimPrefix(u.GetReason().String(), "UNREADABLE_REASON_"))
	case *evev1.SubscribeResponse_Checkpoint:
		return checkpointText(item.Checkpoint)
	}
	return "nothing"
}

func omittedText(o *evev1.Omitted) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" omitted %d", o.GetSize())
}

func checkpointText(c *evev1.Checkpoint) string {
	text := strings.TrimPrefix(c.GetReason().String(), "CHECKPOINT_REASON_")
	if c.GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP {
		if c.CaughtUpLine == nil {
			text += " -"
		} else {
			text += fmt.Sprintf(" %d", c.GetCaughtUpLine())
		}
	}
	if s := c.GetSkipped(); s != nil {
		text += fmt.Sprintf(" %d", s.GetFromLine())
		if s.GetFromRecordIndex() > 0 {
			text += fmt.Sprintf(".%d", s.GetFromRecordIndex())
		}
		text += fmt.Sprintf("..%d", s.GetToLine())
	}
	if v := c.GetStreamVersion(); v != 0 {
		text += fmt.Sprintf(" %d", v)
	}
	if e := c.GetEnd(); e != 0 {
		text += " " + strings.TrimPrefix(e.String(), "END_REASON_")
	}
	return text
}

func cursorText(c *evev1.Cursor, version uint32) string {
	text := fmt.Sprintf("@%d", c.GetStreamIndex())
	if c.GetStreamEventIndex() > 0 {
		text += fmt.Sprintf(".%d", c.GetStreamEventIndex())
	}
	if c.GetAnchor() == "" && c.GetStreamIndex()+uint64(c.GetStreamEventIndex()) > 0 {
		text += "?"
	}
	if v := c.GetStreamVersion(); v != version && v != 0 {
		text += fmt.Sprintf(" v%d", v)
	}
	if c.GetSessionEnded() {
		text += " ended"
	}
	return text
}

// statusOf is a status in a line: its code and reason, the metadata of its ErrorInfo, the field at fault, and the
// delay of its RetryInfo.
func statusOf(err error) string {
	if err == nil {
		return "OK"
	}
	s := status.Convert(err)
	words := []string{code.Code(s.Code()).String()}
	if info := errorInfo(s); info != nil {
		words = append(words, info.GetReason())
		for _, name := range slices.Sorted(maps.Keys(info.GetMetadata())) {
			words = append(words, name+"="+info.GetMetadata()[name])
		}
	}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				words = append(words, "field="+v.GetField())
			}
		case *errdetails.RetryInfo:
			words = append(words, "retry="+d.GetRetryDelay().AsDuration().String())
		}
	}
	return strings.Join(words, " ")
}

func errorInfo(s *status.Status) *errdetails.ErrorInfo {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

// readsOf are requests for a stream in text.
func readsOf(requests []fakeeve.Request, began time.Time) []string {
	out := none()
	for _, q := range requests {
		kind := "live"
		if q.Query.Get("includeTailIndex") == "1" {
			kind = "tail"
		}
		start := q.Query.Get("startIndex")
		if start == "" {
			start = "0"
		}
		text := kind + " " + start
		if q.Status != http.StatusOK && q.Status != 0 {
			text += fmt.Sprintf(" %d", q.Status)
		}
		if at := q.At.Sub(began); at > 0 {
			text += " +" + at.String()
		}
		out = append(out, text)
	}
	return out
}

// checkMessages holds what is true of every stream: each message has a whole cursor that never moves back, a record's
// cursor stands right behind it, and nothing follows ENDED (api.md sections 2 and 3).
func checkMessages(t *testing.T, name string, req *evev1.SubscribeRequest, res rig.Result) {
	t.Helper()
	before := req.GetCursor()
	for i, m := range res.Messages {
		c := m.GetCursor()
		if c.GetAgent() == "" || c.GetSessionId() != res.Header.Get("eve-session-id")[0] {
			t.Errorf("%s: message %d: cursor names %q/%q", name, i, c.GetAgent(), c.GetSessionId())
		}
		line, slot := c.GetStreamIndex(), c.GetStreamEventIndex()
		if line < before.GetStreamIndex() || line == before.GetStreamIndex() && slot < before.GetStreamEventIndex() {
			t.Errorf("%s: message %d: the cursor went back from %v to %v", name, i, before, c)
		}
		before = c
		if at := coordinatesOf(m); at != nil {
			wantLine, wantSlot := at.GetLine(), at.GetRecordIndex()+1
			if at.GetEndOfLine() {
				wantLine, wantSlot = at.GetLine()+1, 0
			}
			if line != wantLine || slot != wantSlot {
				t.Errorf("%s: message %d: record at %v has cursor %v", name, i, at, c)
			}
		}
		ended := m.GetCheckpoint().GetReason() == evev1.CheckpointReason_CHECKPOINT_REASON_ENDED
		if ended != (res.Err == nil && i == len(res.Messages)-1) && i == len(res.Messages)-1 && res.Complete {
			t.Errorf("%s: the last message is %v, the status %v", name, m, res.Err)
		}
		if ended && i < len(res.Messages)-1 {
			t.Errorf("%s: message %d is ENDED, and %d follow", name, i, len(res.Messages)-1-i)
		}
	}
}

func coordinatesOf(m *evev1.SubscribeResponse) *evev1.SourceCoordinates {
	switch item := m.GetItem().(type) {
	case *evev1.SubscribeResponse_Fact:
		return item.Fact.GetSource()
	case *evev1.SubscribeResponse_Progress:
		return item.Progress.GetSource()
	case *evev1.SubscribeResponse_Event:
		return item.Event.GetSource()
	case *evev1.SubscribeResponse_UnreadableLine:
		return item.UnreadableLine.GetSource()
	}
	return nil
}

// checkStatus holds what is true of every error: domain and reason, repeated in the trailers with the retry delay
// (api.md section 5).
func checkStatus(t *testing.T, name string, res rig.Result, left bool) {
	t.Helper()
	if res.Err == nil || left {
		return
	}
	s := status.Convert(res.Err)
	info := errorInfo(s)
	if info == nil {
		t.Errorf("%s: %v has no ErrorInfo", name, res.Err)
		return
	}
	if info.GetDomain() != "eve.v1" {
		t.Errorf("%s: domain %q", name, info.GetDomain())
	}
	if _, known := evev1.ErrorReason_value["ERROR_REASON_"+info.GetReason()]; !known {
		t.Errorf("%s: reason %q is not in ErrorReason", name, info.GetReason())
	}
	if got := res.Trailer.Get("eve-error-reason"); !slices.Equal(got, []string{info.GetReason()}) {
		t.Errorf("%s: trailer eve-error-reason %q, reason %q", name, got, info.GetReason())
	}
	var want []string
	for _, d := range s.Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			want = []string{fmt.Sprint(retry.GetRetryDelay().AsDuration().Milliseconds())}
		}
	}
	if got := res.Trailer.Get("eve-retry-after-ms"); !slices.Equal(got, want) {
		t.Errorf("%s: trailer eve-retry-after-ms %q, RetryInfo %q", name, got, want)
	}
	if retryable := s.Code() == codes.Unavailable || s.Code() == codes.ResourceExhausted || s.Code() == codes.Aborted; retryable != (want != nil) {
		t.Errorf("%s: %v: RetryInfo %q", name, s.Code(), want)
	}
}

// checkRecords compares records with the log, as an independent reader takes it apart: no record is another line's.
func checkRecords(t *testing.T, name string, log fakeeve.Log, version int, records []*evev1.SubscribeResponse) {
	t.Helper()
	for _, m := range records {
		got := placeOf(t, m)
		if got.Raw == "" { // omitted, not asked for, or a line without text
			continue
		}
		want := ""
		for e := range fakeeve.Entries(log, version, int64(got.Line), int64(got.Line)+1) {
			want = validUTF8(e.Raw)
			if int(got.Slot) < len(e.Records) {
				want = validUTF8(e.Records[got.Slot].Raw)
			}
		}
		if got.Raw != want {
			t.Errorf("%s: record %d.%d is %q, stored is %q", name, got.Line, got.Slot, got.Raw, want)
		}
	}
}
