package contract_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/evegateway/evegateway/gateway"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// every asks for a heartbeat interval.
func every(d time.Duration) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return request(func(r *evev1.SubscribeRequest) { r.HeartbeatInterval = durationpb.New(d) })
}

// standard gives the gateway its own heartbeat settings back.
func standard(cfg *gateway.Config) { cfg.Heartbeat, cfg.HeartbeatMin, cfg.HeartbeatMax = 0, 0, 0 }

// A stream is never silent for longer than was agreed, and the heartbeat's cursor says what has been passed.
func TestHeartbeat(t *testing.T) {
	first := []string{"fact 0.0 almanac.page @1", "CAUGHT_UP 0 @1"}
	// moves are n commits without facts, one every two seconds.
	moves := func(n int) []moment {
		var out []moment
		for i := range n {
			out = append(out, appends(time.Duration(2*i+2)*time.Second, commit(i)))
		}
		return out
	}
	runCases(t, []contractCase{
		{name: "by default every ten seconds", config: standard, open: true, lines: numbered(1), calls: []call{
			{leave: 25 * time.Second, timed: true, want: join(first, "HEARTBEAT @1 +10s", "HEARTBEAT @1 +20s")},
		}},
		{name: "as often as asked", config: standard, open: true, lines: numbered(1), calls: []call{
			{ask: every(3 * time.Second), leave: 7 * time.Second, timed: true, want: join(first, "HEARTBEAT @1 +3s", "HEARTBEAT @1 +6s")},
		}},
		{name: "no more often than allowed", config: standard, open: true, lines: numbered(1), calls: []call{
			{ask: every(time.Millisecond), leave: 2500 * time.Millisecond, timed: true, want: join(first, "HEARTBEAT @1 +1s", "HEARTBEAT @1 +2s")},
		}},
		{name: "no more seldom than allowed", config: standard, open: true, lines: numbered(1), calls: []call{
			{ask: every(time.Hour), leave: 130 * time.Second, timed: true, want: join(first, "HEARTBEAT @1 +1m0s", "HEARTBEAT @1 +2m0s")},
		}},
		{name: "only after silence", config: standard, open: true, lines: numbered(1), calls: []call{{
			during: []moment{appends(7*time.Second, numbered(2)[1]), appends(16*time.Second, numbered(3)[2])},
			leave:  27 * time.Second, timed: true,
			want: join(first, "fact 1.0 almanac.page @2 +7s", "fact 2.0 almanac.page @3 +16s", "HEARTBEAT @3 +26s"),
		}}},
		{name: "shows what moved without a record", config: standard, open: true, lines: numbered(1), calls: []call{
			{during: moves(9)[8:], leave: 22 * time.Second, timed: true, want: join(first, "HEARTBEAT @1 +10s", "HEARTBEAT @2 +20s")},
		}},
		{name: "however much moves without a record", config: standard, open: true, lines: numbered(1), calls: []call{
			{during: moves(12), leave: 21 * time.Second, timed: true, want: join(first, "HEARTBEAT @5 +10s", "HEARTBEAT @10 +20s")},
		}},
		{
			name: "while Eve is away", config: standard, open: true, lines: numbered(1),
			script: append(make([]fakeeve.Fault, 2), slices.Repeat([]fakeeve.Fault{answer(502)}, 9)...),
			calls: []call{{
				during: []moment{{5 * time.Second, func(s *fakeeve.Session) { s.CutAll(fakeeve.Abort) }}},
				leave:  22 * time.Second, timed: true, want: join(first, "HEARTBEAT @1 +10s", "HEARTBEAT @1 +20s"),
			}},
		},
		{name: "before anything happened", config: standard, open: true, calls: []call{
			{leave: 15 * time.Second, timed: true, want: []string{"CAUGHT_UP - @0", "HEARTBEAT @0 +10s"}},
		}},
	})
}

// A resume from a heartbeat or from CAUGHT_UP continues exactly there.
func TestHeartbeatResume(t *testing.T) {
	runCases(t, []contractCase{{name: "behind empty commits", config: standard, open: true, lines: numbered(1), calls: []call{
		{
			during: []moment{appends(3*time.Second, commit(1), commit(2))}, stop: 3,
			want: join(pages(0, 1), "CAUGHT_UP 0 @1", "HEARTBEAT @3"),
		},
		{
			during: []moment{appends(3*time.Second, numbered(4)[3])}, stop: 2,
			want: []string{"CAUGHT_UP 2 @3", "fact 3.0 almanac.page @4"}, reads: []string{"tail 2", "live 2"},
		},
	}}})
}

// CAUGHT_UP comes once and names the tail of the moment the read opened, whatever is written while it catches up and
// however often the connection changes.
func TestCaughtUp(t *testing.T) {
	slow := fakeeve.Fault{LineDelay: time.Second}
	runCases(t, []contractCase{
		{name: "while more is written", open: true, lines: numbered(4), script: []fakeeve.Fault{slow, slow, slow}, calls: []call{{
			during: []moment{appends(2500*time.Millisecond, numbered(6)[4:]...), ends(2 * time.Minute)},
			want:   join(pages(0, 4), "CAUGHT_UP 3 @4", pages(4, 6), "ENDED STREAM_CLOSED @6"),
		}}},
		{name: "over cuts before it", lines: numbered(4), script: []fakeeve.Fault{
			{CutAt: fakeeve.AtLine(1, 3)}, {CutAt: fakeeve.AtLine(2, 3), Cut: fakeeve.Abort}, {CutAt: fakeeve.AtLine(3, 3), Cut: fakeeve.Reset},
		}, calls: []call{{want: join(pages(0, 4), "CAUGHT_UP 3 @4", "ENDED STREAM_CLOSED @4")}}},
		{name: "over cuts behind it", open: true, lines: numbered(2), calls: []call{{
			during: []moment{
				{5 * time.Second, func(s *fakeeve.Session) { s.CutAll(fakeeve.Abort) }},
				{90 * time.Second, func(s *fakeeve.Session) { s.CutAll(fakeeve.Clean) }},
				appends(100*time.Second, numbered(3)[2]), ends(101 * time.Second),
			},
			want: join(pages(0, 2), "CAUGHT_UP 1 @2", pages(2, 3), "ENDED STREAM_CLOSED @3"),
		}}},
		{name: "with nothing to catch up with", lines: numbered(3), calls: []call{
			{stop: 3, want: pages(0, 3)},
			{want: []string{"CAUGHT_UP 2 @3", "ENDED STREAM_CLOSED @3"}},
		}},
		{name: "where the last lines have no records", lines: []string{commit(0, "a"), commit(1)}, calls: []call{
			{want: []string{"fact 0.0 a @1", "CAUGHT_UP 1 @2", "ENDED STREAM_CLOSED @2"}},
		}},
	})
}

// Headers go out when the open has succeeded, before there is anything to send.
func TestHeaders(t *testing.T) {
	for _, version := range []int{21, 26, 27} {
		synctest.Test(t, func(t *testing.T) {
			c := contractCase{version: version, open: true, lines: numbered(1)}
			r := rig.New(t, c.options())
			defer r.Close()
			r.Eve.AddSession(session, c.spec())
			r.Eve.Script(session, always(fakeeve.Fault{StallAt: fakeeve.AtByte(0), Stall: fakeeve.Forever}))
			began := time.Now()
			stream, err := r.Client.Subscribe(t.Context(), rig.FromStart(session))
			if err != nil {
				t.Fatal(err)
			}
			header, err := stream.Header()
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("headers came after %v", took)
			}
			want := map[string]string{"eve-session-id": session, "eve-stream-version": strconv.Itoa(version)}
			for name, text := range want {
				if got := header.Get(name); !slices.Equal(got, []string{text}) {
					t.Errorf("header %s is %q, want %q", name, got, text)
				}
			}
		})
	}
}
