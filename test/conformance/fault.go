package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// faultSpec is what goes wrong with one response. It is fakeeve.Fault as data.
type faultSpec struct {
	// Status, when not 0, is answered instead of a stream, with the error code Code.
	Status int    `json:"status"`
	Code   string `json:"code"`
	// VersionHeader replaces the version header; "" leaves it out.
	VersionHeader *string `json:"versionHeader"`
	// Cut ends the body at At: clean, abort or reset.
	Cut string `json:"cut"`
	At  *place `json:"at"`
	// Lease is how long the response lasts, LineDelay what passes before each line.
	Lease     duration `json:"lease"`
	LineDelay duration `json:"lineDelay"`
	// Chunk is the most bytes in one HTTP chunk.
	Chunk int `json:"chunk"`
	// CRLF ends lines with \r\n.
	CRLF bool `json:"crlf"`
	// Insert puts raw lines before stored lines.
	Insert []insertion `json:"insert"`
	// Late sends lines that are stored meanwhile later than their place (contract O4).
	Late *lateSpec `json:"late"`
}

// insertion is a raw line before a stored one.
type insertion struct {
	Line int64  `json:"line"`
	Text string `json:"text"`
}

// place is a place in a body: Byte bytes into stored line Line, or into the line After lines behind the one that the
// response starts with, or, with neither, into the body.
type place struct {
	Line  *int64 `json:"line"`
	After *int64 `json:"after"`
	Byte  int64  `json:"byte"`
}

// lateSpec is one line in so many, up to places late.
type lateSpec struct {
	Seed   uint64 `json:"seed"`
	OneIn  int    `json:"oneIn"`
	Places int    `json:"places"`
}

// script gives each connection its fault.
func (c *testCase) script() fakeeve.Script {
	return func(conn fakeeve.Conn) fakeeve.Fault {
		spec := *c.Always
		if conn.N < len(c.Faults) {
			spec = c.Faults[conn.N]
		}
		fault, err := spec.fault(conn)
		if err != nil {
			panic("conformance: a checked fault: " + err.Error())
		}
		return fault
	}
}

// fault makes the fault of one connection.
func (s *faultSpec) fault(conn fakeeve.Conn) (fakeeve.Fault, error) {
	f := fakeeve.Fault{
		VersionHeader: s.VersionHeader,
		Lease:         time.Duration(s.Lease),
		LineDelay:     time.Duration(s.LineDelay),
		ChunkSize:     s.Chunk,
		CRLF:          s.CRLF,
	}
	if s.Status != 0 {
		refusal := fakeeve.Refuse(s.Status, s.Code)
		f.Status, f.Body = refusal.Status, refusal.Body
		if s.Status == http.StatusTooManyRequests {
			f.Header = http.Header{"Retry-After": {"0"}}
		}
	}
	if (s.Cut == "") != (s.At == nil) {
		return f, fmt.Errorf("cut %q: want cut and at together", s.Cut)
	}
	if s.At != nil {
		kinds := map[string]fakeeve.How{"clean": fakeeve.Clean, "abort": fakeeve.Abort, "reset": fakeeve.Reset}
		how, ok := kinds[s.Cut]
		if !ok {
			return f, fmt.Errorf("cut is %q, want clean, abort or reset", s.Cut)
		}
		f.Cut = how
		switch {
		case s.At.Line != nil:
			f.CutAt = fakeeve.AtLine(*s.At.Line, s.At.Byte)
		case s.At.After != nil:
			f.CutAt = fakeeve.AtLine(max(conn.Start, 0)+*s.At.After, s.At.Byte)
		default:
			f.CutAt = fakeeve.AtByte(s.At.Byte)
		}
	}
	if len(s.Insert) > 0 {
		f.Rewrite = func(line int64, raw []byte) []byte {
			for _, i := range slices.Backward(s.Insert) {
				if i.Line == line {
					raw = fakeeve.Insert(line, i.Text)(line, raw)
				}
			}
			return raw
		}
	}
	if s.Late != nil {
		f.Late = fakeeve.SomeLate(s.Late.Seed, s.Late.OneIn, s.Late.Places)
	}
	return f, nil
}
