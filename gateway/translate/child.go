package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payload of the child family (contract 3.12).

func childOpened(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_ChildOpened{ChildOpened: &evev1.ChildOpened{
		SessionId:  o.id("sessionId"),
		Owner:      child(o, "owner", owner),
		Name:       o.text("name"),
		StreamPath: o.text("stream"),
	}}
}
