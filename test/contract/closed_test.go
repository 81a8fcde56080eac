package contract_test

import (
	"testing"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// A position that only a position record reached has no line before it to find again. A server that says at once that
// its stored stream is closed has answered all there is to ask: the end, not an error.
func TestPositionRecordThenClosed(t *testing.T) {
	closed := body(heartbeat, `{"$eve":"stream.ended"}`)
	runCases(t, []contractCase{{
		name: "told by a bounded body", lines: numbered(2), rewritten: true,
		script: []fakeeve.Fault{
			{Verbatim: body(heartbeat, numbered(2)[0], numbered(2)[1], position(9), leaseEnded)},
			{Verbatim: closed},
		},
		calls: []call{{
			want:  join(pages(0, 2), "CAUGHT_UP 1 @2", "SOURCE_SKIPPED 2..9 @9?", "ENDED STREAM_CLOSED @9?"),
			reads: []string{"tail 0", "tail 8"},
		}},
	}})
}

// One that does not end the body either is not waited for: what lies beyond its tail is refused within seconds.
func TestPositionRecordThenSilence(t *testing.T) {
	runCases(t, []contractCase{{
		name: "by a server that does not bound", open: true, lines: numbered(2), quirks: fakeeve.Quirks{TailInformational: true, IgnoresFollow: true},
		script: []fakeeve.Fault{{Verbatim: body(heartbeat, numbered(2)[0], numbered(2)[1], position(9), leaseEnded)}},
		calls: []call{{
			want:   join(pages(0, 2), "CAUGHT_UP 1 @2", "SOURCE_SKIPPED 2..9 @9?"),
			reads:  []string{"tail 0", "tail 8", "tail 8 +1.25s", "tail 8 +2.5s"},
			status: "OUT_OF_RANGE CURSOR_AHEAD line=8 tail=1",
		}},
	}})
}
