package contract_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// only, except and quiet are the three parts of a filter.
func only(types ...string) *evev1.Filter   { return &evev1.Filter{IncludeTypes: types} }
func except(types ...string) *evev1.Filter { return &evev1.Filter{ExcludeTypes: types} }
func quiet() *evev1.Filter                 { return &evev1.Filter{ExcludeProgress: true} }

// filtered resumes with a filter, or begins with it.
func filtered(f *evev1.Filter) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(last *evev1.Cursor) *evev1.SubscribeRequest {
		req := rig.FromStart(session)
		if last != nil {
			req = rig.From(last)
		}
		req.Filter = f
		return req
	}
}

// filterEnd is what every case of a closed log of n lines ends with.
func filterEnd(n int) []string {
	return []string{fmt.Sprintf("CAUGHT_UP %d @%d", n-1, n), fmt.Sprintf("ENDED STREAM_CLOSED @%d", n)}
}

// What a filter lets through, whatever this build knows of the types.
func TestFilter(t *testing.T) {
	lines := []string{
		commit(0, "session.started", "delivery.admitted"),
		commit(1, "turn.started", "almanac.page", "turnip.sown"),
		delta("a"),
		commit(3, "almanac.page", "model.started"),
		`not json`,
		`{"progress":{"type":"almanac.draft","data":{}}}`,
		commit(6),
		commit(7, "turn.settled", "delivery.settled", "almanac.page.turned"),
	}
	tests := []struct {
		name   string
		filter *evev1.Filter
		want   []string // but the unreadable line, which always comes
	}{
		{"empty", &evev1.Filter{}, []string{
			"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1",
			"fact 1.0 turn.started @1.1", "fact 1.1 almanac.page @1.2", "fact 1.2 turnip.sown @2",
			"progress 2 content.delta @3", "fact 3.0 almanac.page @3.1", "fact 3.1 model.started @4", "progress 5 almanac.draft @6",
			"fact 7.0 turn.settled @7.1", "fact 7.1 delivery.settled @7.2", "fact 7.2 almanac.page.turned @8",
		}},
		{"one type", only("turn.settled"), []string{"fact 7.0 turn.settled @8"}},
		{"two types", only("turn.settled", "session.started"), []string{"fact 0.0 session.started @1", "fact 7.0 turn.settled @8"}},
		{"a family, and nothing that only begins like it", only("turn.*"), []string{"fact 1.0 turn.started @2", "fact 7.0 turn.settled @8"}},
		{"a family of types nobody knows", only("almanac.*"), []string{
			"fact 1.1 almanac.page @2", "fact 3.0 almanac.page @4", "progress 5 almanac.draft @6", "fact 7.2 almanac.page.turned @8",
		}},
		{"a family inside a family", only("almanac.page.*"), []string{"fact 7.2 almanac.page.turned @8"}},
		{"an unknown type exactly", only("almanac.page"), []string{"fact 1.1 almanac.page @2", "fact 3.0 almanac.page @4"}},
		{"a family is no type", only("turn"), nil},
		{"letters count", only("Turn.*", "SESSION.STARTED"), nil},
		{"nothing there is", only("ledger.closed"), nil},
		{"without one type", except("almanac.page", "turnip.sown", "almanac.page.turned", "content.delta", "almanac.draft"), []string{
			"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1", "fact 1.0 turn.started @2",
			"fact 3.1 model.started @4", "fact 7.0 turn.settled @7.1", "fact 7.1 delivery.settled @8",
		}},
		{"without families", except("almanac.*", "turn.*", "turnip.*", "content.*"), []string{
			"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1", "fact 3.1 model.started @4", "fact 7.1 delivery.settled @8",
		}},
		{"exclude wins over include", &evev1.Filter{IncludeTypes: []string{"turn.*", "delivery.settled"}, ExcludeTypes: []string{"turn.settled", "delivery.*"}}, []string{
			"fact 1.0 turn.started @2",
		}},
		{"exclude wins over the same type", &evev1.Filter{IncludeTypes: []string{"turn.started"}, ExcludeTypes: []string{"turn.started"}}, nil},
		{"without progress", quiet(), []string{
			"fact 0.0 session.started @0.1", "fact 0.1 delivery.admitted @1",
			"fact 1.0 turn.started @1.1", "fact 1.1 almanac.page @1.2", "fact 1.2 turnip.sown @2",
			"fact 3.0 almanac.page @3.1", "fact 3.1 model.started @4",
			"fact 7.0 turn.settled @7.1", "fact 7.1 delivery.settled @7.2", "fact 7.2 almanac.page.turned @8",
		}},
		{"without progress, not even the one asked for", &evev1.Filter{IncludeTypes: []string{"content.delta", "almanac.*"}, ExcludeProgress: true}, []string{
			"fact 1.1 almanac.page @2", "fact 3.0 almanac.page @4", "fact 7.2 almanac.page.turned @8",
		}},
		{"only progress", only("content.delta"), []string{"progress 2 content.delta @3"}},
	}
	var cases []contractCase
	for _, tt := range tests {
		at := slices.IndexFunc(tt.want, func(text string) bool { // the first record behind line 4
			return strings.Contains(text, " 5 ") || strings.Contains(text, " 7.")
		})
		if at < 0 {
			at = len(tt.want)
		}
		want := slices.Insert(slices.Clone(tt.want), at, "unreadable 4 INVALID_JSON @5")
		cases = append(cases, contractCase{name: tt.name, lines: lines, calls: []call{{ask: filtered(tt.filter), want: join(want, filterEnd(8))}}})
	}
	runCases(t, cases)
}

// Up to version 26 progress are the events that a later one says whole. What a line is decides, not the header: a
// server of 27 that reads an older session shows its events as they are.
func TestFilterLegacy(t *testing.T) {
	types := []string{
		"session.started", "message.appended", "reasoning.appended", "action.input.appended", "action.partial",
		"action.result", "message.completed", "almanac.appended", "almanac.page", "appended",
	}
	var lines []string
	for i, typ := range types {
		lines = append(lines, legacy(i, typ))
	}
	events := func(keep ...int) []string {
		var out []string
		for _, i := range keep {
			out = append(out, fmt.Sprintf("event %d %s @%d", i, types[i], i+1))
		}
		return out
	}
	filters := []struct {
		name   string
		filter *evev1.Filter
		keep   []int
	}{
		{"without progress", quiet(), []int{0, 5, 6, 8, 9}},
		{"a family", only("message.*"), []int{1, 6}},
		{"a family without its progress", &evev1.Filter{IncludeTypes: []string{"message.*"}, ExcludeProgress: true}, []int{6}},
		{"without a family", except("action.*", "almanac.page"), []int{0, 1, 2, 6, 7, 9}},
	}
	var cases []contractCase
	for _, f := range filters {
		for _, version := range []int{21, 26, 27} {
			c := contractCase{name: fmt.Sprintf("%s, version %d", f.name, version), version: version, lines: lines}
			if version < 27 { // nothing tells there that a stored stream is closed
				c.calls = []call{{
					ask: func(*evev1.Cursor) *evev1.SubscribeRequest {
						req := filtered(f.filter)(nil)
						return rig.UntilTail(req)
					},
					want: join(events(f.keep...), "CAUGHT_UP 9 @10", "ENDED BOUND_REACHED @10"),
				}}
			} else {
				c.calls = []call{{ask: filtered(f.filter), want: join(events(f.keep...), filterEnd(10))}}
			}
			cases = append(cases, c)
		}
	}
	runCases(t, cases)
}

// What is left out moves the cursor all the same; the last record delivered of a line ends it.
func TestFilterCursor(t *testing.T) {
	lines := []string{
		commit(0, "tide.high", "almanac.page", "tide.low"),
		commit(1, "almanac.page", "almanac.page"),
		delta("a"),
		commit(3, "almanac.page", "tide.high"),
	}
	tides, pages := only("tide.*"), only("almanac.*")
	runCases(t, []contractCase{
		{name: "leading, middle and trailing records left out", lines: lines, calls: []call{{ask: filtered(tides), want: join(
			"fact 0.0 tide.high @0.1", "fact 0.2 tide.low @1", "fact 3.1 tide.high @4", filterEnd(4))}}},
		{name: "the end of the line is its last delivered record", lines: lines, calls: []call{{ask: filtered(pages), want: join(
			"fact 0.1 almanac.page @1", "fact 1.0 almanac.page @1.1", "fact 1.1 almanac.page @2", "fact 3.0 almanac.page @4", filterEnd(4))}}},
		{name: "stop inside a line, resume unfiltered: what was passed is passed, the rest comes", lines: lines, calls: []call{
			{ask: filtered(tides), stop: 1, want: []string{"fact 0.0 tide.high @0.1"}},
			{want: join("fact 0.1 almanac.page @0.2", "fact 0.2 tide.low @1", "fact 1.0 almanac.page @1.1", "fact 1.1 almanac.page @2",
				"progress 2 content.delta @3", "fact 3.0 almanac.page @3.1", "fact 3.1 tide.high @4", filterEnd(4))},
		}},
		{name: "stop behind a line whose end was left out, resume unfiltered", lines: lines, calls: []call{
			{ask: filtered(pages), stop: 1, want: []string{"fact 0.1 almanac.page @1"}},
			{stop: 1, want: []string{"fact 1.0 almanac.page @1.1"}, reads: []string{"tail 0"}},
		}},
		{name: "resume inside a line with nothing left of it to deliver", lines: lines, calls: []call{
			{stop: 1, want: []string{"fact 0.0 tide.high @0.1"}},
			{ask: filtered(only("tide.high")), want: join("fact 3.1 tide.high @4", filterEnd(4))},
		}},
		{name: "resume inside the last line with nothing left of it to deliver", lines: lines, calls: []call{
			{ask: filtered(except("tide.*")), stop: 5, want: []string{
				"fact 0.1 almanac.page @1", "fact 1.0 almanac.page @1.1", "fact 1.1 almanac.page @2", "progress 2 content.delta @3", "fact 3.0 almanac.page @4",
			}},
			{ask: filtered(only("tide.*")), want: filterEnd(4)},
		}},
		{name: "all left out: CAUGHT_UP and ENDED show where", lines: lines, calls: []call{
			{ask: filtered(only("ledger.closed")), want: filterEnd(4)},
			{want: filterEnd(4)},
		}},
		{name: "bounded", lines: lines, calls: []call{{
			ask: func(*evev1.Cursor) *evev1.SubscribeRequest {
				return rig.UntilTail(filtered(only("ledger.closed"))(nil))
			},
			want: []string{"CAUGHT_UP 3 @4", "ENDED BOUND_REACHED @4"},
		}}},
		{name: "the session's end left out is the session's end", lines: []string{commit(0, "almanac.page", "session.ended"), commit(1, "almanac.page")}, calls: []call{
			{ask: filtered(pages), want: []string{"fact 0.0 almanac.page @1 ended", "ENDED SESSION_ENDED @1 ended"}},
			{want: []string{"ENDED SESSION_ENDED @1 ended"}, reads: none()},
		}},
		{name: "everything left out before a cut", lines: lines, script: []fakeeve.Fault{{CutAt: fakeeve.AtLine(3, 4), Cut: fakeeve.Abort}}, calls: []call{
			{ask: filtered(only("tide.high")), want: join("fact 0.0 tide.high @1", "fact 3.1 tide.high @4", filterEnd(4)), reads: []string{"tail 0", "live 2 +125ms"}},
		}},
	})
}

// A stream whose lines are all left out is as alive as any: heartbeats come, and show the cursor move.
func TestFilterHeartbeat(t *testing.T) {
	var busy []moment
	for i := range 30 {
		busy = append(busy, appends(time.Duration(i)*time.Second+500*time.Millisecond, commit(i+1, "tide.high")))
	}
	ask := func(last *evev1.Cursor) *evev1.SubscribeRequest {
		req := filtered(only("ledger.*"))(last)
		req.HeartbeatInterval = durationpb.New(10 * time.Second)
		return req
	}
	runCases(t, []contractCase{
		{name: "a line a second", open: true, lines: []string{commit(0, "tide.low")}, calls: []call{
			{
				ask: ask, during: busy, leave: 35 * time.Second, timed: true,
				want: []string{"CAUGHT_UP 0 @1", "HEARTBEAT @11 +10s", "HEARTBEAT @21 +20s", "HEARTBEAT @31 +30s"},
			},
			{ask: ask, during: []moment{ends(time.Second)}, want: []string{"CAUGHT_UP 30 @31", "ENDED STREAM_CLOSED @31"}, reads: []string{"tail 30", "live 30"}},
		}},
		{name: "a slow replay", lines: numbered(25), script: []fakeeve.Fault{{LineDelay: time.Second}}, calls: []call{{
			ask: ask, timed: true, want: []string{"HEARTBEAT @9 +10s", "HEARTBEAT @19 +20s", "CAUGHT_UP 24 @25 +25s", "ENDED STREAM_CLOSED @25 +25s"},
		}}},
	})
}

// Progress is dated by the latest commit, delivered or not, before or behind a resume.
func TestFilterProgressTime(t *testing.T) {
	lines := []string{delta("unknown"), commit(7, "tide.high"), delta("a"), commit(9, "tide.low"), `{"at":"noon","facts":[]}`, delta("b")}
	tests := []struct {
		name   string
		before *evev1.Filter // of the first part
		stop   int           // its messages
	}{
		{"in one go", nil, 0},
		{"resumed behind what was left out", only("content.*"), 1},
		{"resumed behind what was delivered", nil, 2},
		{"resumed between", only("content.*"), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.New(t, rig.Options{})
				defer r.Close()
				r.Eve.AddSession(session, fakeeve.SessionSpec{Log: fakeeve.NewMemLog(lines...)})
				var all []*evev1.SubscribeResponse
				req := filtered(tt.before)(nil)
				if tt.stop > 0 {
					part := r.Subscribe(t.Context(), req, func(*evev1.SubscribeResponse) bool { tt.stop--; return tt.stop == 0 })
					all = part.Records()
					req = rig.From(part.Last().GetCursor())
				}
				req.Filter = only("content.*")
				all = append(all, r.Subscribe(t.Context(), rig.UntilTail(req), nil).Records()...)
				got := map[uint64]string{}
				for _, m := range all {
					if p := m.GetProgress(); p != nil {
						got[p.GetSource().GetLine()] = "unset"
						if p.RecordedAt != nil {
							got[p.GetSource().GetLine()] = p.GetRecordedAt().AsTime().Format("15:04:05")
						}
					}
				}
				if diff := cmp.Diff(map[uint64]string{0: "unset", 2: "09:00:07", 5: "09:00:09"}, got); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A pattern that cannot be meant is refused with the list it stands in, before Eve is asked anything.
func TestFilterInvalid(t *testing.T) {
	patterns := []string{
		"", " ", "*", ".*", ".", "turn.", ".turn", "turn..settled", "turn.*.settled", "*.settled", "turn*", "turn.se*", "turn.**", "turn.?",
		"turn settled", "turn.settled ", "turn.settled\n", "turn,session", "turn/settled", "tür.zu", strings.Repeat("a", 129),
	}
	lists := map[string]func(...string) *evev1.Filter{"filter.include_types": only, "filter.exclude_types": except}
	var cases []contractCase
	add := func(name, field string, f *evev1.Filter) {
		cases = append(cases, contractCase{name: name, lines: numbered(1), calls: []call{{
			ask: filtered(f), reads: none(), status: "INVALID_ARGUMENT REQUEST_INVALID field=" + field,
		}}})
	}
	for field, list := range lists {
		for _, p := range patterns {
			add(fmt.Sprintf("%s %.20q", field, p), field, list("turn.settled", p))
		}
		add(field+", too many", field, list(slices.Repeat([]string{"turn.settled"}, 101)...))
	}
	runCases(t, cases)

	longest := "almanac." + strings.Repeat("p", 120)
	runCases(t, []contractCase{{name: "the most and the longest", lines: []string{commit(0, longest, "almanac.page")}, calls: []call{
		{ask: filtered(only(slices.Repeat([]string{longest}, 100)...)), want: join("fact 0.0 "+longest+" @1", filterEnd(1))},
	}}})
}

// passesFilter is the meaning of a filter, said a second time: what a record is must be decided by its type and by
// whether it is a preview.
func passesFilter(f *evev1.Filter, e fakeeve.Entry, r fakeeve.Record) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			if family, ok := strings.CutSuffix(p, ".*"); ok {
				return len(r.Type) > len(family) && r.Type[:len(family)+1] == family+"."
			}
			return p == r.Type
		})
	}
	preview := e.Kind == fakeeve.Progress
	if e.Kind == fakeeve.Event {
		parts := strings.Split(r.Type, ".")
		preview = len(parts) > 1 && parts[len(parts)-1] == "appended" || r.Type == "action.partial"
	}
	if preview && f.GetExcludeProgress() || matches(f.GetExcludeTypes()) {
		return false
	}
	return len(f.GetIncludeTypes()) == 0 || matches(f.GetIncludeTypes())
}

// filterWorld makes random lines and random filters over a few types.
type filterWorld struct{ *rand.Rand }

func (w filterWorld) typ() string {
	types := strings.Fields("tide.high tide.low almanac.page turn.started turn.settled message.appended action.partial session.started")
	return types[w.IntN(len(types))]
}

func (w filterWorld) line(version, i int) string {
	switch n := w.IntN(10); {
	case n == 0:
		return fmt.Sprintf("garbage %d", i)
	case version < 27:
		return legacy(i, w.typ())
	case n <= 2:
		return fmt.Sprintf(`{"progress":{"type":%q,"data":{"delta":"%d"}}}`, w.typ(), i)
	}
	types := make([]string, w.IntN(5)) // none, too
	for s := range types {
		types[s] = w.typ()
	}
	return commit(i, types...)
}

func (w filterWorld) filter() *evev1.Filter {
	list := func() (out []string) {
		for range w.IntN(4) {
			p := w.typ()
			if w.IntN(3) == 0 {
				p = p[:strings.IndexByte(p, '.')] + ".*"
			}
			out = append(out, p)
		}
		return out
	}
	f := &evev1.Filter{ExcludeProgress: w.IntN(2) == 0}
	if w.IntN(2) == 0 {
		f.IncludeTypes = list()
	}
	if w.IntN(2) == 0 {
		f.ExcludeTypes = list()
	}
	return f
}

// A filtered stream's cursor is as good as an unfiltered one's: wherever it is taken, and whatever the filter of the
// next part, each part delivers exactly what its filter lets through between its two cursors.
func TestFilterSwitching(t *testing.T) {
	for seed := range uint64(120) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { filterSwitching(t, filterWorld{rand.New(rand.NewPCG(seed, 3))}) })
		})
	}
}

func filterSwitching(t *testing.T, w filterWorld) {
	version := []int{21, 26, 27, 27, 27}[w.IntN(5)]
	var lines []string
	for i := range 5 + w.IntN(40) {
		lines = append(lines, w.line(version, i))
	}
	log := fakeeve.NewMemLog(lines...)
	r := rig.New(t, rig.Options{})
	defer r.Close()
	r.Eve.AddSession(session, fakeeve.SessionSpec{Version: version, Log: log})
	if w.IntN(3) == 0 {
		r.Eve.Script(session, fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtByte(int64(w.IntN(3000)))}))
	}
	var at *evev1.Cursor
	for part := 0; ; part++ {
		f := w.filter()
		req, stop := rig.UntilTail(filtered(f)(at)), 1+w.IntN(8)
		seen := 0
		res := r.Subscribe(t.Context(), req, func(*evev1.SubscribeResponse) bool { seen++; return seen == stop })
		if res.Err != nil {
			t.Fatalf("part %d: %v", part, res.Err)
		}
		checkMessages(t, fmt.Sprintf("part %d", part), req, res)
		next := res.Last().GetCursor()
		if diff := cmp.Diff(between(log, version, f, at, next), placesOf(t, res.Records())); diff != "" {
			t.Fatalf("part %d, %v from %v to %v (-want +got):\n%s", part, f, at, next, diff)
		}
		at = next
		if res.Complete {
			break
		}
	}
	if at.GetStreamIndex() != uint64(len(lines)) || at.GetStreamEventIndex() != 0 {
		t.Errorf("the end is at %v, the log has %d lines", at, len(lines))
	}
}

// between is what a filter lets through of the log from one cursor up to another.
func between(log fakeeve.Log, version int, f *evev1.Filter, from, to *evev1.Cursor) []place {
	var out []place
	take := func(e fakeeve.Entry, slot int64, raw []byte) {
		line, s := uint64(e.Line), uint32(slot)
		before := func(c *evev1.Cursor) bool { // the record stands before c
			return line < c.GetStreamIndex() || line == c.GetStreamIndex() && s < c.GetStreamEventIndex()
		}
		if !before(from) && before(to) {
			out = append(out, place{line, s, validUTF8(raw)})
		}
	}
	for e := range fakeeve.Entries(log, version, 0, -1) {
		if e.Kind == fakeeve.Unreadable {
			take(e, 0, e.Raw)
		}
		for _, rec := range e.Records {
			if passesFilter(f, e, rec) {
				take(e, rec.Slot, rec.Raw)
			}
		}
	}
	return out
}
