package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Payloads of the content family (contract 3.7).

func contentDelta(o *object, p *evev1.Progress) {
	p.Data = &evev1.Progress_ContentDelta{ContentDelta: &evev1.ContentDelta{
		PartId: o.id("partId"),
		Kind:   o.optionalText("kind"),
		Delta:  o.text("delta"),
	}}
}

func contentCompleted(o *object, f *evev1.Fact) {
	m := &evev1.ContentCompleted{
		PartId:       o.id("partId"),
		RunId:        o.text("runId"),
		Kind:         o.text("kind"),
		ValueJson:    o.verbatim("value"),
		ValueRef:     child(o, "valueRef", valueReference),
		Phase:        o.text("phase"),
		Interrupted:  o.flag("interrupted"),
		MediaType:    o.optionalText("mediaType"),
		FallbackText: o.optionalText("fallbackText"),
	}
	if o.find("value").Kind() == '"' {
		m.Text = o.optionalText("value")
	}
	f.Data = &evev1.Fact_ContentCompleted{ContentCompleted: m}
}
