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
