package translate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

var update = flag.Bool("update", false, "write the golden files") //nolint:gochecknoglobals // where the flag package wants it

// TestTranscripts translates every record of every transcript and compares it with the golden files: one response a
// line, in protojson. record_json is compared with the record itself, and left out of the golden files unless it is
// lossy.
func TestTranscripts(t *testing.T) {
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			var got bytes.Buffer
			var latest time.Time
			for _, l := range tr.lines {
				if l.Kind == source.Commit {
					latest = l.At
				}
				slots := max(len(l.Records), 1)
				if l.Kind == source.Commit {
					slots = len(l.Records)
				}
				for slot := range slots {
					var resp evev1.SubscribeResponse
					translate.Item(&resp, l, slot, slot == slots-1, latest, translate.FormOf(rawTyped))
					if l.Kind != source.Unreadable {
						dropRaw(t, &resp, l.Records[slot].Raw)
					}
					writeJSON(t, &got, &resp)
				}
			}
			golden := tr.name + ".ndjson"
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", "golden", golden), got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := fs.ReadFile(os.DirFS("testdata/golden"), golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(bytes.Split(want, []byte("\n")), bytes.Split(got.Bytes(), []byte("\n"))); diff != "" {
				t.Errorf("translation differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// dropRaw checks that record_json is the record byte for byte, and clears it then.
func dropRaw(t *testing.T, resp *evev1.SubscribeResponse, raw []byte) {
	t.Helper()
	var text *string
	var lossy bool
	switch item := resp.Item.(type) {
	case *evev1.SubscribeResponse_Fact:
		text, lossy = &item.Fact.RecordJson, item.Fact.Lossy
	case *evev1.SubscribeResponse_Progress:
		text, lossy = &item.Progress.RecordJson, item.Progress.Lossy
	case *evev1.SubscribeResponse_Event:
		text, lossy = &item.Event.RecordJson, item.Event.Lossy
	}
	if lossy == utf8.Valid(raw) {
		t.Errorf("lossy = %t for %q", lossy, raw)
	}
	if lossy {
		return
	}
	if *text != string(raw) {
		t.Errorf("record_json = %q, want %q", *text, raw)
	}
	*text = ""
}

// writeJSON writes one response on a line. protojson varies its spaces on purpose, so they are taken out.
func writeJSON(t *testing.T, to *bytes.Buffer, resp *evev1.SubscribeResponse) {
	t.Helper()
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(to, b); err != nil {
		t.Fatal(err)
	}
	to.WriteByte('\n')
}
