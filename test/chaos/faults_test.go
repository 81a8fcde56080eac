package chaos_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// faults draws what goes wrong with the connections of one reader, in their order.
type faults struct {
	rnd     *rand.Rand
	session *stored
	burst   fakeeve.Fault // of answers that are no stream
	left    int           // of the burst
}

// next draws the fault of a connection.
func (f *faults) next(c fakeeve.Conn) fakeeve.Fault {
	if f.left > 0 {
		f.left--
		return f.burst
	}
	var fault fakeeve.Fault
	if f.one(6) {
		f.begin()
		return f.burst
	}
	f.opening(&fault)
	f.body(c, &fault)
	f.form(c, &fault)
	f.order(&fault)
	return fault
}

// order draws which events are late. That is no fault but the server's way.
func (f *faults) order(fault *fakeeve.Fault) {
	if !f.session.late {
		return
	}
	seed := f.rnd.Uint64()
	fault.Late = func(line int64) int {
		rnd := newRand(seed, uint64(line))
		if rnd.IntN(4) > 0 {
			return 0
		}
		return 1 + rnd.IntN(maxPlaces)
	}
}

// one is true one time in a hundred, times so many.
func (f *faults) one(percent int) bool { return f.rnd.IntN(100) < percent }

// begin begins a burst.
func (f *faults) begin() {
	status := pick(f.rnd, 0, 302, 401, 404, 404, 404, 409, 409, 425, 429, 429, 500, 502, 503, 503, 504)
	f.left = pick(f.rnd, 0, 0, 1, 2, f.rnd.IntN(14))
	if status == 401 {
		f.left = 0 // two in a row are final
	}
	f.burst = fakeeve.Fault{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: `{"ok":false,"error":"no"}`}
	switch {
	case status == 0:
		page := http.Header{"Content-Type": {"text/html"}, "X-Eve-Stream-Version": nil}
		f.burst = fakeeve.Fault{Header: page, Verbatim: []byte("<!doctype html>\n<p>Please sign in.\n")}
	case status == 429 && f.one(70):
		f.burst.Header.Set("Retry-After", strconv.Itoa(1+f.rnd.IntN(12)))
	case status == 409 && f.one(30):
		f.burst.Body = `{"ok":false,"code":"busy","error":"no"}`
	case status == 502:
		f.burst.Header, f.burst.Body = http.Header{"Content-Type": {"text/html"}}, "<h1>Bad gateway</h1>"
	}
}

// opening draws what is wrong with the head of the response.
func (f *faults) opening(fault *fakeeve.Fault) {
	if f.one(4) {
		fault.Delay = pick(f.rnd, 50*time.Millisecond, 3*time.Second, 12*time.Second, fakeeve.Forever)
	}
	switch f.rnd.IntN(100) {
	case 0:
		fault.VersionHeader = pick(f.rnd, new(string), new("28"), new("later"))
	case 1:
		fault.TailHeader = pick(f.rnd, new(string), new("many"), new("-7"))
	case 2:
		fault.Header = http.Header{"X-Eve-Session-Id": {"wrun_other"}}
		fault.Verbatim = bytes.Repeat([]byte(`{"at":"2026-10-01T00:00:00.000Z","facts":[{"type":"x.foreign","data":"wrun_other"}]}`+"\n"), 60)
	}
	switch s := f.session; {
	case s.crossed && f.one(35):
		fault.Version = 21 + f.rnd.IntN(7)
	case s.version < 27 && f.one(15):
		fault.Version = 21 + f.rnd.IntN(6)
	}
}

// body draws where the body ends or stalls.
func (f *faults) body(c fakeeve.Conn, fault *fakeeve.Fault) {
	if f.one(35) {
		fault.CutAt, fault.Cut = f.point(c), pick(f.rnd, fakeeve.Clean, fakeeve.Clean, fakeeve.Abort, fakeeve.Reset)
	}
	if f.one(5) {
		fault.StallAt, fault.Stall = f.point(c), pick(f.rnd, time.Second, 20*time.Second, 50*time.Second, fakeeve.Forever)
	}
	if f.one(35) {
		fault.Lease = pick(f.rnd, time.Nanosecond, 20*time.Millisecond, time.Second, time.Duration(1+f.rnd.IntN(50))*time.Second, -1)
	}
	if f.one(5) {
		fault.Heartbeat = -1
	}
	if f.one(8) && !f.session.late && !f.session.flood { // slower than is waited for what is late, or for the end
		fault.LineDelay = pick(f.rnd, 5*time.Millisecond, 300*time.Millisecond, 3*time.Second)
	}
}

// point draws a place in a body.
func (f *faults) point(c fakeeve.Conn) *fakeeve.Point {
	if f.one(30) {
		return fakeeve.AtByte(f.rnd.Int64N(3000))
	}
	i := max(0, c.Start) + f.rnd.Int64N(10)
	size := 80
	if i < int64(len(f.session.lines)) {
		size = len(f.session.lines[i]) + 2
	}
	return fakeeve.AtLine(i, f.rnd.Int64N(int64(size)))
}

// form draws how the body is sent and what is between its lines.
func (f *faults) form(c fakeeve.Conn, fault *fakeeve.Fault) {
	if f.one(15) && !f.session.flood {
		fault.ChunkSize = pick(f.rnd, 1, 3, 50)
	}
	fault.CRLF = f.one(12)
	if !f.one(25) {
		return
	}
	between := pick(f.rnd, "", "  ", `{"$eve":"heartbeat"}`, `{"$eve":"new.thing","next":99}`,
		fmt.Sprintf(`{"$eve":"position","next":%d}`, f.rnd.Int64N(max(1, c.Start+1))))
	before, space := max(0, c.Start)+f.rnd.Int64N(6), f.session.version == 27 && f.one(40)
	fault.Rewrite = func(line int64, raw []byte) []byte {
		if space && len(raw) < maxLine-10 && (bytes.HasPrefix(raw, []byte(`{"at":"`)) || bytes.HasPrefix(raw, []byte(`{"progress":{`))) {
			raw = append([]byte(" { "), raw[1:]...) // the same, spelled otherwise
		}
		if line == before {
			raw = append([]byte(between+"\n"), raw...)
		}
		return raw
	}
}

// describe shows a fault in the schedule.
func describe(f *fakeeve.Fault) string {
	var words []string
	add := func(on bool, format string, args ...any) {
		if on {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(f.Delay > 0, "after %v", f.Delay)
	add(f.Status > 0, "status %d", f.Status)
	add(f.Verbatim != nil, "other bytes")
	add(f.Version > 0, "version %d", f.Version)
	add(f.VersionHeader != nil, "bad version")
	add(f.TailHeader != nil, "bad tail")
	add(len(f.Header) > 0, "headers %v", f.Header)
	add(f.CutAt != nil, "cut at %+v, way %d", value(f.CutAt), f.Cut)
	add(f.StallAt != nil, "stalled at %+v for %v", value(f.StallAt), f.Stall)
	add(f.Lease != 0, "lease %v", f.Lease)
	add(f.Heartbeat < 0, "no heartbeats")
	add(f.LineDelay > 0, "%v a line", f.LineDelay)
	add(f.ChunkSize > 0, "chunks of %d", f.ChunkSize)
	add(f.CRLF, "CRLF")
	add(f.Rewrite != nil, "more between lines")
	add(f.Late != nil, "late events")
	if len(words) == 0 {
		return "nothing wrong"
	}
	return strings.Join(words, ", ")
}

func value(p *fakeeve.Point) any {
	if p == nil {
		return nil
	}
	return *p
}
