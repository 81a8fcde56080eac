package cursor_test

import (
	"testing"
	"time"

	"github.com/evegateway/evegateway/cursor"
)

func BenchmarkAfter(b *testing.B) {
	c := cursor.Cursor{Agent: "support", SessionID: "wrun_1"}
	l := cursor.Line{Version: 27, Slots: 4, At: time.Unix(1_790_000_000, 0), Anchor: "1:5f0c6b7e0b0e4d6a9a3b8f5f0c6b7e0b"}
	b.ReportAllocs()
	for b.Loop() {
		for slot := range l.Slots {
			c = c.After(l, slot)
		}
		l.Number++
	}
}

func BenchmarkProto(b *testing.B) {
	c := cursor.Cursor{
		Agent: "support", SessionID: "wrun_1", StreamVersion: 27, StreamIndex: 47, StreamEventIndex: 2,
		LastCommitTime: time.Unix(1_790_000_000, 0).UTC(), Anchor: "1:5f0c6b7e0b0e4d6a9a3b8f5f0c6b7e0b",
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Proto()
	}
}
