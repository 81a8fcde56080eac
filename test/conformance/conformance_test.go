package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// TestMain runs the tests, or, where the kit of a test started it, the target.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "client" {
		os.Exit(clientMain(os.Args[2:]))
	}
	// Under the race detector a program takes a second to exit, unless told otherwise.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// kit runs the cases that match against the test's client with a flaw, and gives the report and the number of failures.
func kit(t *testing.T, flaw, match string, timeout time.Duration) (report string, failed int) {
	t.Helper()
	cases, err := loadCases(regexp.MustCompile(match))
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client, err := program(exe + " client " + flaw + " {url} {session} {start}")
	if err != nil {
		t.Fatal(err)
	}
	eve := newEve()
	running, err := fakeeve.StartTCP(t.Context(), eve)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	var out bytes.Buffer
	s := suite{eve: eve, url: running.URL, target: client, timeout: timeout, at: 2}
	if failed, err = s.run(t.Context(), cases, &out); err != nil {
		t.Fatal(err)
	}
	return out.String(), failed
}

const patience = time.Minute

// TestRightClient: a client without a flaw passes, so what fails below fails for the flaw.
func TestRightClient(t *testing.T) {
	const cases = "^(transcript-0[1-8]b?|cut-(clean|abort|reset|live|before-line-end)|truncated-.*|position-(forward|first|several|then-cut|backward|malformed)|" +
		"transport-records|blank-lines|garbage|unknown-types|crlf|one-byte-chunks|oversize-.*|after-the-end|missing-.*|version-(28|missing).*|resume|resume-in-a-skip|lease-(idle|mid-.*)|empty)$"
	report, failed := kit(t, "none", cases, patience)
	if failed != 0 || !strings.Contains(report, " passed, 0 failed\n") || strings.Count(report, "PASS ") < 30 {
		t.Errorf("report:\n%s", report)
	}
}

// TestFlaws: each flaw fails the case that is about its rule, and the report says the rule and the first difference.
func TestFlaws(t *testing.T) {
	tests := []struct {
		flaw, name string
		says       string // in the report
	}{
		{flawTransport, "transport-records", "Transport records, known or not, are not lines"},
		{flawTransport, "transcript-05", "record 0 is\n    line 1 slot 0"},
		{flawTruncated, "truncated-last-line", "line 7 unreadable"},
		{flawTruncated, "truncated-delta", "line 9 unreadable"},
		{flawPosition, "position-forward", "want\n    skipped [5,9]"},
		{flawPosition, "transcript-06", "skipped ["},
		{flawSilent, "position-first", "want\n    skipped [0,4]"},
		{flawRepeat, "cut-abort", "record "},
		{flawUnknown, "unknown-types", "new.first"},
		{flawEnd, "cut-clean", "is missing: line 5"},
		{flawVersion, "version-28", "record 0 is one too many"},
		{flawError, "missing-for-good", "want an error"},
		{flawOutput, "empty", "is no record"},
	}
	for _, tt := range tests {
		t.Run(tt.flaw+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			report, failed := kit(t, tt.flaw, "^"+tt.name+"$", patience)
			if failed != 1 || !strings.HasPrefix(report, "FAIL "+tt.name+" ") || !strings.HasSuffix(report, "0 passed, 1 failed\n") {
				t.Errorf("report:\n%s", report)
			}
			if !strings.Contains(report, tt.says) {
				t.Errorf("want %q in the report:\n%s", tt.says, report)
			}
		})
	}
}

// TestTimeout: a target that does not end is ended, and has failed.
func TestTimeout(t *testing.T) {
	report, failed := kit(t, flawHang, "^empty$", 200*time.Millisecond)
	if failed != 1 || !strings.Contains(report, "did not end in time") {
		t.Errorf("report:\n%s", report)
	}
}

// TestNoUntil: what a target cannot be asked is reported, and not counted as passed.
func TestNoUntil(t *testing.T) {
	report, failed := kit(t, "none", "^tail$", patience)
	if failed != 0 || !strings.HasPrefix(report, "SKIP tail: the target has no {until}") || !strings.Contains(report, "0 passed, 0 failed, 1 skipped") {
		t.Errorf("report:\n%s", report)
	}
}

// TestCommandLine: what the program says to which command line.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		flags flags
		out   string
		err   string
	}{
		{"list", flags{List: true, Run: "^crlf$"}, "crlf\n    Lines may end with a carriage return and a line feed.\n", ""},
		{"no target", flags{Run: "."}, "", "--target or --gateway"},
		{"nothing matches", flags{Run: "nothing-like-it"}, "", "no case matches"},
		{"no program", flags{Run: ".", Target: " "}, "", "no program"},
		{"bad expression", flags{Run: "("}, "", "--run"},
		{"program that is not there", flags{Run: "^crlf$", Target: "./not-there {url}"}, "0 passed, 1 failed", "cases failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.flags.Timeout, tt.flags.Parallel = patience, 1
			var out bytes.Buffer
			err := tt.flags.run(t.Context(), &out, t.Output())
			if !strings.Contains(out.String(), tt.out) || !strings.Contains(fmt.Sprint(err), tt.err) || (err == nil) != (tt.err == "") {
				t.Errorf("error %v, output:\n%s", err, out.String())
			}
		})
	}
}

// TestCasesChecked: a case that does not say what it means is refused.
func TestCasesChecked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, says string }{
		{"unknown name", `[{"name":"a","rules":"x"}]`, "unknown field"},
		{"no rule", `[{"name":"a","log":{"lines":[]}}]`, "no rule"},
		{"no log", `[{"name":"a","rule":"x"}]`, "log: want"},
		{"bad name", `[{"name":"a b","rule":"x","log":{"lines":[]}}]`, "the name"},
		{"unknown until", `[{"name":"a","rule":"x","log":{"lines":[]},"until":"noon"}]`, "until"},
		{"unknown cut", `[{"name":"a","rule":"x","log":{"lines":[]},"always":{"cut":"softly","at":{"byte":1}}}]`, "softly"},
		{"cut without a place", `[{"name":"a","rule":"x","log":{"lines":[]},"faults":[{"cut":"clean"}]}]`, "together"},
		{"unknown shape", `[{"name":"a","rule":"x","log":{"generated":{"lines":3,"shape":"round"}}}]`, "shape"},
		{"faults in a transcript", `[{"name":"a","rule":"x","log":{"transcripts":["01"]},"always":{"crlf":true}}]`, "as they are"},
		{"live beyond the log", `[{"name":"a","rule":"x","log":{"lines":["1"]},"live":{"from":1,"every":"1ms"}}]`, "live"},
		{"more behind", `[] []`, "follows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := parseCases([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
}

// TestSame: records are compared as JavaScript would read them.
func TestSame(t *testing.T) {
	t.Parallel()
	tests := []struct {
		got, want string
		same      bool
	}{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1.0 } `, true},
		{`{"a":2}`, `{"a":1,"a":2}`, true},
		{`{"a":100}`, `{"a":1e2}`, true},
		{`{"a":0}`, `{"a":-0}`, true},
		{`{"a":null}`, `{"a":1e400}`, true},
		{`{"a":"é"}`, `{"a":"\u00e9"}`, true},
		{`{"a":"\ud83d"}`, `{"a":"\uD83D"}`, true},
		{`{"a":1}`, `{"a":1,"a":2}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":[1]}`, `{"a":[1,2]}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1`, `{"a":1}`, false},
	}
	for _, tt := range tests {
		if same(record{Raw: tt.got}, record{Raw: tt.want}, false) != tt.same {
			t.Errorf("%s and %s: the same is %v, want %v", tt.got, tt.want, !tt.same, tt.same)
		}
	}
}
