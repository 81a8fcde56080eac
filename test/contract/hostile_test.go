package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// Up to version 26 the session's end can overtake other events. A client that pauses while the end is held back for
// them must not lose them, for how long ever it pauses.
func TestEndOvertakesWhileTheClientPauses(t *testing.T) {
	for _, pause := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond, 7 * time.Second} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(26)}})
				defer r.Close()
				s := r.Eve.AddSession(session, fakeeve.SessionSpec{})
				s.Append(legacy(0, "session.started"))
				r.Eve.Script(session, func(fakeeve.Conn) fakeeve.Fault {
					return fakeeve.Fault{Late: func(line int64) int {
						if line >= 3 && line <= 7 {
							return 5
						}
						return 0
					}}
				})
				go func() {
					time.Sleep(time.Second) // virtual
					pad := strings.Repeat("x", 1<<20)
					var lines []string
					for i := 1; i <= 7; i++ {
						lines = append(lines, strings.Replace(legacy(i, "message.completed"), `"n"`, fmt.Sprintf(`"pad":%q,"n"`, pad), 1))
					}
					s.Append(append(lines, legacy(8, "session.completed"))...)
				}()
				seen := map[string]int{}
				res := r.Subscribe(t.Context(), rig.FromStart(session), func(m *evev1.SubscribeResponse) bool {
					if e := m.GetEvent(); e != nil {
						seen[e.GetMetaId()]++
						if len(seen) == 2 {
							time.Sleep(pause) // virtual
						}
					}
					return false
				})
				if res.Err != nil {
					t.Fatal(res.Err)
				}
				for i := range 9 {
					if n := seen[fmt.Sprintf("evt_%03d", i)]; n != 1 {
						t.Errorf("event %d came %d times", i, n)
					}
				}
				if c := res.Last().GetCursor(); c.GetStreamIndex() != 9 || !c.GetSessionEnded() {
					t.Errorf("the last cursor is %v", c)
				}
			})
		})
	}
}

// A proxy's page or a compressed body is no stream, whatever other headers it carries: none of it counts.
func TestAnswersThatAreNoStream(t *testing.T) {
	for name, header := range map[string]http.Header{
		"compressed": {"Content-Encoding": {"gzip"}},
		"a page":     {"Content-Type": {"text/html; charset=utf-8"}},
	} {
		bad := fakeeve.Fault{Header: header, Verbatim: []byte("garbage\nmore garbage\n")}
		runCases(t, []contractCase{{
			name: name, lines: numbered(2), script: []fakeeve.Fault{bad, bad},
			calls: []call{{want: join(pages(0, 2), "CAUGHT_UP 1 @2", "ENDED STREAM_CLOSED @2")}},
		}})
	}
}

// A version header of any bytes is answered by its own error.
func TestVersionOfAnyBytes(t *testing.T) {
	runCases(t, []contractCase{{
		name: "no UTF-8", lines: numbered(1), script: []fakeeve.Fault{{VersionHeader: new("\xff\xfe9")}},
		calls: []call{{status: `UNIMPLEMENTED STREAM_VERSION_UNSUPPORTED stream_version=\xff\xfe9`}},
	}})
}

// No message is larger than the client can receive, whichever part of a line is absurdly long.
func TestOmittedNames(t *testing.T) {
	long := strings.Repeat("n", 8000)
	lines := []string{
		`{"at":"` + long + `","facts":[{"type":"turn.started","data":{}}]}`,
		`{"at":"2026-11-18T09:00:00Z","facts":[{"type":"` + long + `","scope":{"turnId":"` + long + `"},"data":{}}]}`,
		`{"progress":{"type":"` + long + `","data":{}}}`,
		`{"type":"` + long + `","data":{},"meta":{"id":"` + long + `","at":"` + long + `","deliveryIds":["` + long + `","` + long + `","` + long + `"]}}`,
	}
	for _, version := range []int{26, 27} {
		synctest.Test(t, func(t *testing.T) {
			r := rig.New(t, rig.Options{Eve: []fakeeve.Option{fakeeve.WithVersion(version)}})
			defer r.Close()
			r.Eve.AddSession(session, fakeeve.SessionSpec{}).Append(lines...)
			req := rig.UntilTail(rig.FromStart(session))
			req.MaxMessageBytes = 4096
			res := r.Subscribe(t.Context(), req, nil)
			if res.Err != nil || len(res.Records()) != len(lines) {
				t.Fatalf("%d records, %v", len(res.Records()), res.Err)
			}
			for i, m := range res.Messages {
				if n := proto.Size(m); n > 4096 {
					t.Errorf("version %d, message %d has %d bytes", version, i, n)
				}
			}
		})
	}
}

// What is kept of a commit must not multiply its size.
func TestTooManyFacts(t *testing.T) {
	line := `{"at":"2026-11-18T09:00:00Z","facts":[` + strings.Repeat("0,", 1<<18) + `0]}`
	runCases(t, []contractCase{{
		name: "unreadable, and told", lines: []string{line, commit(1, "turn.started")}, rewritten: true,
		calls: []call{{want: []string{"unreadable 0 INVALID_JSON @1", "fact 1.0 turn.started @2", "CAUGHT_UP 1 @2", "ENDED STREAM_CLOSED @2"}}},
	}})
}
