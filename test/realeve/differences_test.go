//go:build realeve

package realeve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// What the suite stands on finds what it has to find.
func TestDifferences(t *testing.T) {
	t.Parallel()
	var stored [][]byte
	var received []*evev1.LegacyEvent
	for i := range 5 {
		line := fmt.Sprintf(`{"type":"message.appended","data":{},"meta":{"id":"evt_%d"}}`, i)
		stored = append(stored, []byte(line))
		received = append(received, &evev1.LegacyEvent{
			Type: "message.appended", MetaId: fmt.Sprintf("evt_%d", i), RecordJson: line,
			Source: &evev1.SourceCoordinates{Line: uint64(i)},
		})
	}
	other := &evev1.LegacyEvent{Type: "message.appended", MetaId: "evt_2", RecordJson: string(stored[2]) + " ", Source: received[2].GetSource()}
	misnamed := &evev1.LegacyEvent{Type: "message.completed", MetaId: "evt_2", RecordJson: string(stored[2]), Source: received[2].GetSource()}
	for _, test := range []struct {
		name     string
		received []*evev1.LegacyEvent
		from     int
		late     int
		errs     []string
	}{
		{name: "the same", received: received},
		{name: "from a line on", received: received[3:], from: 3},
		{name: "lost", received: slices.Delete(slices.Clone(received), 4, 5), errs: []string{"line 4 lost"}},
		{name: "all lost", errs: []string{"line 0 lost", "line 4 lost"}},
		{name: "twice", received: append(slices.Clone(received), received[1]), errs: []string{"line 1 received twice"}},
		{name: "before the start", received: received, from: 1, late: 4, errs: []string{"line 0 received"}},
		{name: "other bytes", received: slices.Replace(slices.Clone(received), 2, 3, other), errs: []string{"is not stored", "line 2 lost"}},
		{name: "other type", received: slices.Replace(slices.Clone(received), 2, 3, misnamed), errs: []string{"line 2: type"}},
		{name: "out of order", received: []*evev1.LegacyEvent{received[0], received[2], received[1], received[3], received[4]}, late: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			late, err := differences(test.received, stored, test.from)
			if late != test.late {
				t.Errorf("%d late, want %d", late, test.late)
			}
			if (err != nil) != (test.errs != nil) {
				t.Fatalf("got %v, want %q", err, test.errs)
			}
			for _, want := range test.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
