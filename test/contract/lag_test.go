package contract_test

import (
	"testing"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// After a cut the storage can lag behind what it delivered already. A live server then sends from its own tail on,
// under whatever number it was asked for (contract O3): what arrives is not another history, it is an earlier part of
// the same one, and the stream goes on when storage has caught up.
func TestStorageLagsAtAReconnect(t *testing.T) {
	all := numbered(7)
	runCases(t, []contractCase{{
		name: "lines come back", open: true, lines: all[:6], rewritten: true,
		script: []fakeeve.Fault{{}, {}},
		calls: []call{{
			during: []moment{
				{50 * time.Second, func(s *fakeeve.Session) { s.MemLog().Truncate(3); s.CutAll(fakeeve.Abort) }},
				{51 * time.Second, func(s *fakeeve.Session) { s.Append(all[3:6]...) }},
				{55 * time.Second, func(s *fakeeve.Session) { s.Append(all[6]); s.MemLog().End() }},
			},
			want: join(pages(0, 6), "CAUGHT_UP 5 @6", pages(6, 7), "ENDED STREAM_CLOSED @7"),
		}},
	}})
}
