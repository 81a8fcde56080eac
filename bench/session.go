package main

import (
	"fmt"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// shape is what the lines of a session are like, by the name it has in the tables.
type shape string

// The shapes, and what they are called here: the text deltas of a model that talks, the small commits of one that calls
// tools, tools with large results, and what a working agent writes.
const (
	small   shape = "small"
	typical shape = "typical"
	large   shape = "large"
	mixed   shape = "mixed"
)

func shapes() []shape { return []shape{small, typical, large, mixed} }

func (s shape) generated() fakeeve.Shape {
	switch s {
	case typical:
		return fakeeve.Commits
	case large:
		return fakeeve.LargeResults
	case mixed:
		return fakeeve.Mixed
	default:
		return fakeeve.SmallDeltas
	}
}

// session is a session of the fake Eve.
type session struct {
	Shape   shape
	Version int
	Lines   int64
}

func (s session) id() string { return fmt.Sprintf("wrun_%s_%d_%d", s.Shape, s.Version, s.Lines) }

// payloads are the forms that are measured.
func payloads() []evev1.Payload {
	return []evev1.Payload{evev1.Payload_PAYLOAD_RAW, evev1.Payload_PAYLOAD_RAW_AND_TYPED}
}

func payloadName(p evev1.Payload) string {
	if p == evev1.Payload_PAYLOAD_RAW {
		return "raw"
	}
	return "raw + typed"
}
