package translate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// Item fills the item of dst for the record in one slot of l; slot is 0 for every line that is no commit. It panics
// when l has no such slot.
//
// endOfLine says that the record is the last of its line that the stream delivers. latest is the time of the latest
// commit before l, zero when unknown: progress has no time of its own (contract 2.6).
func Item(dst *evev1.SubscribeResponse, l *source.Line, slot int, endOfLine bool, latest time.Time, f Form) {
	switch l.Kind {
	case source.Commit:
		dst.Item = fact(l, slot, endOfLine, f)
	case source.Progress:
		dst.Item = progress(l, endOfLine, latest, f)
	case source.Event:
		dst.Item = event(l, endOfLine, f)
	case source.Unreadable:
		dst.Item = unreadable(l, endOfLine, f)
	}
}

// Omit replaces the content of an item that [Item] made by a note of its size as the server wrote it, because the
// message would be too large. Type, scope and coordinates stay, cut where they are absurdly long. An unreadable line, which has no such note, loses
// its text.
func Omit(dst *evev1.SubscribeResponse, l *source.Line, slot int) {
	switch item := dst.Item.(type) {
	case *evev1.SubscribeResponse_Fact:
		m := item.Fact
		m.Type, m.RecordedAtText = short(m.Type), short(m.RecordedAtText)
		shorten(m.Scope)
		m.RecordJson, m.Lossy, m.Data, m.DecodeError = "", false, nil, ""
		m.Omitted = omitted(l, slot)
	case *evev1.SubscribeResponse_Progress:
		m := item.Progress
		m.Type = short(m.Type)
		shorten(m.Scope)
		m.RecordJson, m.Lossy, m.Data, m.DecodeError = "", false, nil, ""
		m.Omitted = omitted(l, slot)
	case *evev1.SubscribeResponse_Event:
		m := item.Event
		m.Type, m.MetaId, m.MetaAtText = short(m.Type), short(m.MetaId), short(m.MetaAtText)
		m.DeliveryIds = slices.Clone(m.DeliveryIds[:min(len(m.DeliveryIds), 2)]) // the line's own
		for i := range m.DeliveryIds {
			m.DeliveryIds[i] = short(m.DeliveryIds[i])
		}
		m.RecordJson, m.Lossy = "", false
		m.Omitted = omitted(l, slot)
	case *evev1.SubscribeResponse_UnreadableLine:
		m := item.UnreadableLine
		m.Text, m.Truncated = "", l.Size > 0
	}
}

// maxShort is the longest name that stays whole in an omitted record, in bytes. Real ones are a fraction of it.
const maxShort = 256

func short(s string) string {
	if len(s) <= maxShort {
		return s
	}
	return validText(s[:maxShort])
}

func shorten(s *evev1.Scope) {
	if s != nil {
		s.TurnId, s.RunId, s.TaskId, s.ChangeId = short(s.TurnId), short(s.RunId), short(s.TaskId), short(s.ChangeId)
	}
}

func omitted(l *source.Line, slot int) *evev1.Omitted {
	return &evev1.Omitted{
		Reason: evev1.OmittedReason_OMITTED_REASON_TOO_LARGE,
		Size:   uint64(len(l.Records[slot].Raw)),
	}
}

// factItem is all that a fact without a typed payload consists of, in one allocation.
type factItem struct {
	item   evev1.SubscribeResponse_Fact
	fact   evev1.Fact
	source evev1.SourceCoordinates
	scope  evev1.Scope
	at     timestamppb.Timestamp
}

func fact(l *source.Line, slot int, endOfLine bool, f Form) *evev1.SubscribeResponse_Fact {
	r := &l.Records[slot]
	x := new(factItem)
	m := &x.fact
	x.item.Fact = m
	m.Type = validText(r.Type)
	m.Source = setSource(&x.source, l, slot, endOfLine)
	m.Scope = setScope(&x.scope, r)
	if m.RecordedAt = setTime(&x.at, l.At); m.RecordedAt == nil {
		m.RecordedAtText = validText(l.AtText)
	}
	if f.Typed {
		m.DecodeError = decode(r.Data, m, factPayload(r.Type))
		if m.DecodeError != "" {
			m.Data = nil
		}
	}
	if f.Raw || f.Typed && m.Data == nil {
		m.RecordJson, m.Lossy = recordText(r.Raw)
	}
	return &x.item
}

// progressItem is to a progress record what factItem is to a fact.
type progressItem struct {
	item     evev1.SubscribeResponse_Progress
	progress evev1.Progress
	source   evev1.SourceCoordinates
	scope    evev1.Scope
	at       timestamppb.Timestamp
}

func progress(l *source.Line, endOfLine bool, latest time.Time, f Form) *evev1.SubscribeResponse_Progress {
	r := &l.Records[0]
	x := new(progressItem)
	m := &x.progress
	x.item.Progress = m
	m.Type = validText(r.Type)
	m.Source = setSource(&x.source, l, 0, endOfLine)
	m.Scope = setScope(&x.scope, r)
	m.RecordedAt = setTime(&x.at, latest)
	if f.Typed {
		m.DecodeError = decode(r.Data, m, progressPayload(r.Type))
		if m.DecodeError != "" {
			m.Data = nil
		}
	}
	if f.Raw || f.Typed && m.Data == nil {
		m.RecordJson, m.Lossy = recordText(r.Raw)
	}
	return &x.item
}

// setSource fills and returns to.
func setSource(to *evev1.SourceCoordinates, l *source.Line, slot int, endOfLine bool) *evev1.SourceCoordinates {
	to.StreamVersion = l.Version
	to.Line = l.Number
	to.RecordIndex = uint32(slot) //nolint:gosec // a line has fewer records than bytes, and fewer bytes than 2^32
	to.EndOfLine = endOfLine
	return to
}

// setScope fills and returns to, or returns nil when the record has no scope.
func setScope(to *evev1.Scope, r *source.Record) *evev1.Scope {
	if !r.HasScope {
		return nil
	}
	to.TurnId = validText(r.Scope.TurnID)
	to.RunId = validText(r.Scope.RunID)
	to.TaskId = validText(r.Scope.TaskID)
	to.ChangeId = validText(r.Scope.ChangeID)
	return to
}

// setTime fills and returns to, or returns nil when t is unknown or outside the years 1 to 9999, which no Timestamp
// may hold.
func setTime(to *timestamppb.Timestamp, t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	to.Seconds = t.Unix()
	to.Nanos = int32(t.Nanosecond()) //nolint:gosec // below 10^9
	if !to.IsValid() {
		return nil
	}
	return to
}
