package translate_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/evegateway/evegateway/gateway/source"
	"github.com/evegateway/evegateway/gateway/translate"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// benchmarkItem translates one record again and again; with encode it also marshals what came out.
func benchmarkItem(b *testing.B, l *source.Line, p evev1.Payload, encode bool) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(l.Records[0].Raw)))
	f := translate.FormOf(p)
	latest := time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)
	var resp evev1.SubscribeResponse
	var out []byte
	var err error
	for b.Loop() {
		translate.Item(&resp, l, 0, true, latest, f)
		if encode {
			if out, err = (proto.MarshalOptions{}).MarshalAppend(out[:0], &resp); err != nil {
				b.Fatal(err)
			}
		}
	}
}

const (
	raw      = evev1.Payload_PAYLOAD_RAW
	typed    = evev1.Payload_PAYLOAD_TYPED
	rawTyped = evev1.Payload_PAYLOAD_RAW_AND_TYPED
	none     = evev1.Payload_PAYLOAD_NONE
)

const (
	completedFact = `{"at":"2026-11-18T09:00:02.005Z","facts":[{"type":"content.completed","scope":{"turnId":"turn_0","runId":"run_0"},"data":{"partId":"part_0","runId":"run_0","kind":"text","value":"High water at Gull Point is 06:41 and 19:02 tomorrow.","phase":"reply"}}]}`
	usageFact     = `{"at":"2026-11-18T09:00:02.005Z","facts":[{"type":"usage.recorded","scope":{"turnId":"turn_0","runId":"run_0"},"data":{"owner":{"runId":"run_0"},"kind":"model","usage":{"inputTokens":812,"outputTokens":19,"cacheReadTokens":640,"cacheWriteTokens":0,"costUsd":0.0011}}}]}`
	openedFact    = `{"at":"2026-11-18T09:02:02.040Z","facts":[{"type":"interaction.opened","scope":{"turnId":"turn_0"},"data":{"interactionId":"req_A","subject":{"callId":"call_a"},"request":{"kind":"approval","prompt":"Allow book_berth?","title":"Book B12","display":"confirmation","options":[{"id":"approve","label":"Approve","style":"primary"},{"id":"cancel","label":"Cancel"}]}}}]}`
	deltaLine     = `{"progress":{"type":"content.delta","scope":{"turnId":"turn_0","runId":"run_0"},"data":{"partId":"part_0","delta":"is 06:41 and 19:02"}}}`
)

func BenchmarkRawFact(b *testing.B) {
	benchmarkItem(b, line(b, []byte(completedFact), 27, 7), raw, false)
}

func BenchmarkRawFactEncoded(b *testing.B) {
	benchmarkItem(b, line(b, []byte(completedFact), 27, 7), raw, true)
}

func BenchmarkTypedFact(b *testing.B) {
	for name, fact := range map[string]string{"content.completed": completedFact, "usage.recorded": usageFact, "interaction.opened": openedFact} {
		b.Run(name, func(b *testing.B) { benchmarkItem(b, line(b, []byte(fact), 27, 7), typed, false) })
	}
}

func BenchmarkTypedDelta(b *testing.B) {
	benchmarkItem(b, line(b, []byte(deltaLine), 27, 7), typed, false)
}

// BenchmarkTranscripts translates and encodes every record of the transcripts in the default form: the mix of a session.
func BenchmarkTranscripts(b *testing.B) {
	type slot struct {
		l *source.Line
		i int
	}
	var all []slot
	for _, t := range transcripts(b) {
		for _, l := range t.lines {
			for i := range l.Records {
				all = append(all, slot{l, i})
			}
		}
	}
	b.ReportAllocs()
	var resp evev1.SubscribeResponse
	var out []byte
	var err error
	for b.Loop() {
		for _, s := range all {
			translate.Item(&resp, s.l, s.i, true, time.Time{}, translate.FormOf(rawTyped))
			if out, err = (proto.MarshalOptions{}).MarshalAppend(out[:0], &resp); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
