package contract_test

import (
	"testing"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/rig"
)

// An anchor that is not the line's is refused, however it is damaged and whoever made it: nothing but leaving it away
// switches the verification off.
func TestAnchorThatCannotBeJudged(t *testing.T) {
	for version, line := range map[uint32]func(int) string{
		27: func(i int) string { return commit(i, "almanac.page") },
		26: func(i int) string { return legacy(i, "message.completed") },
	} {
		lines := []string{line(0), line(1), line(2)}
		if version == 26 {
			lines = append(lines, legacy(3, "session.completed"))
		}
		with := func(anchor string) func(*evev1.Cursor) *evev1.SubscribeRequest {
			return func(*evev1.Cursor) *evev1.SubscribeRequest {
				c := rig.At(session, version, 2)
				c.Anchor = anchor
				return rig.UntilTail(rig.From(c))
			}
		}
		var cases []contractCase
		for _, bad := range []string{"1", "1c", "1cM2vfZZL8zaW3v_r", "1xM2vfZZL8zaW3v_r2", "2cM2vfZZL8zaW3v_r2", " 1c", "zzz", "h\u00e9", "."} {
			cases = append(cases, contractCase{name: bad, version: int(version), lines: lines, calls: []call{{
				ask: with(bad), status: "FAILED_PRECONDITION CURSOR_DIVERGED line=1",
			}}})
		}
		runCases(t, cases)
	}
}
