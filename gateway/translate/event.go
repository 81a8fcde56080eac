package translate

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// eventItem is all that an event consists of, but for its delivery ids, in one allocation.
type eventItem struct {
	item   evev1.SubscribeResponse_Event
	event  evev1.LegacyEvent
	source evev1.SourceCoordinates
	at     timestamppb.Timestamp
}

// event reports an event of protocol 21 to 26 in its historical shape. Nothing is rewritten and nothing decoded.
func event(l *source.Line, endOfLine bool, f Form) *evev1.SubscribeResponse_Event {
	r := &l.Records[0]
	x := new(eventItem)
	m := &x.event
	x.item.Event = m
	m.Type = validText(r.Type)
	m.Source = setSource(&x.source, l, 0, endOfLine)
	if r.Meta != nil {
		m.MetaId = validText(r.Meta.ID)
		if m.MetaAt = setTime(&x.at, r.Meta.At); m.MetaAt == nil {
			m.MetaAtText = validText(r.Meta.AtText)
		}
		m.DeliveryIds = validTexts(r.Meta.DeliveryIDs)
	}
	if f.any() {
		m.RecordJson, m.Lossy = recordText(r.Raw)
	}
	return &x.item
}
