package contract_test

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
	"github.com/evegateway/evegateway/internal/rig"
)

// commit is a stored line with one fact of each type, written at a second past 09:00. The facts say their slots, so
// that no two are the same.
func commit(second int, types ...string) string {
	facts := make([]string, 0, len(types))
	for slot, typ := range types {
		facts = append(facts, fmt.Sprintf(`{"type":%q,"data":{"slot":%d}}`, typ, slot))
	}
	return fmt.Sprintf(`{"at":%q,"facts":[%s]}`, clock(second), strings.Join(facts, ","))
}

// clock is a time on the day of all cases, as Eve writes it.
func clock(second int) string {
	return fmt.Sprintf("2026-11-18T09:%02d:%02d.000Z", second/60, second%60)
}

// delta is a stored progress line.
func delta(text string) string {
	return fmt.Sprintf(`{"progress":{"type":"content.delta","scope":{"runId":"run_0"},"data":{"partId":"part_0","delta":%q}}}`, text)
}

// legacy is a stored line of versions 21 to 26.
func legacy(id int, typ string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"n":%d},"meta":{"id":"evt_%03d","at":%q}}`, typ, id, id, clock(id))
}

// position is the transport record that names the next line.
func position(next any) string { return fmt.Sprintf(`{"$eve":"position","next":%v}`, next) }

const (
	heartbeat  = `{"$eve":"heartbeat"}`
	leaseEnded = `{"$eve":"stream.lease-ended"}`
)

// numbered are n commits of one fact each.
func numbered(n int) []string {
	lines := make([]string, 0, n)
	for i := range n {
		lines = append(lines, commit(i, "almanac.page"))
	}
	return lines
}

// pages is what the lines from <= i < to of numbered look like to a client.
func pages(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, "fact "+strconv.Itoa(i)+".0 almanac.page @"+strconv.Itoa(i+1))
	}
	return out
}

// join makes one list of lines and lists of lines.
func join(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		default:
			panic(fmt.Sprintf("join of %T", p))
		}
	}
	return out
}

// body is a response body of these lines.
func body(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// at asks from a line on, without an anchor, following.
func at(line uint64) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(*evev1.Cursor) *evev1.SubscribeRequest { return rig.From(rig.At(session, 27, line)) }
}

// whole asks for everything up to the tail.
func whole(*evev1.Cursor) *evev1.SubscribeRequest { return rig.UntilTail(rig.FromStart(session)) }

// restUntilTail resumes up to the tail.
func restUntilTail(last *evev1.Cursor) *evev1.SubscribeRequest { return rig.UntilTail(rig.From(last)) }

// request is from the beginning, with changes.
func request(change func(*evev1.SubscribeRequest)) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(*evev1.Cursor) *evev1.SubscribeRequest {
		req := rig.FromStart(session)
		change(req)
		return req
	}
}

// forged resumes from the last cursor, with changes.
func forged(change func(*evev1.Cursor)) func(*evev1.Cursor) *evev1.SubscribeRequest {
	return func(last *evev1.Cursor) *evev1.SubscribeRequest {
		change(last)
		return rig.From(last)
	}
}

// recordsOf are the records of a stored line, as an independent reader finds them.
func recordsOf(line string) iter.Seq[fakeeve.Record] {
	return fakeeve.Records(fakeeve.NewMemLog(line), 27, 0, -1)
}
