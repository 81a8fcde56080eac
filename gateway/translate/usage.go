package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payload of the usage family (contract 3.14).

func usageRecorded(o *object, f *evev1.Fact) {
	f.Data = &evev1.Fact_UsageRecorded{UsageRecorded: &evev1.UsageRecorded{
		Owner: child(o, "owner", owner),
		Kind:  o.text("kind"),
		Usage: child(o, "usage", usage),
	}}
}

func usage(o *object) *evev1.Usage {
	return &evev1.Usage{
		InputTokens:      o.integer("inputTokens", 64),
		OutputTokens:     o.integer("outputTokens", 64),
		CacheReadTokens:  o.integer("cacheReadTokens", 64),
		CacheWriteTokens: o.integer("cacheWriteTokens", 64),
		CostUsd:          o.optionalNumber("costUsd"),
	}
}
