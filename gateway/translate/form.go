package translate

import evev1 "github.com/evegateway/evegateway/gen/eve/v1"

// Form says which parts of a record to make. The zero Form makes neither: type, scope and coordinates only, and of an
// unreadable line no text.
type Form struct {
	// Raw makes record_json.
	Raw bool
	// Typed makes data. Where there is none (unknown types, failed decodes, events of protocol 21 to 26) it makes
	// record_json instead, so that no form but the zero one loses anything.
	Typed bool
}

// FormOf returns the form a request asks for. A value this build does not know reads as the default, which loses
// nothing.
func FormOf(p evev1.Payload) Form {
	switch p {
	case evev1.Payload_PAYLOAD_RAW:
		return Form{Raw: true}
	case evev1.Payload_PAYLOAD_TYPED:
		return Form{Typed: true}
	case evev1.Payload_PAYLOAD_NONE:
		return Form{}
	default:
		return Form{Raw: true, Typed: true}
	}
}

// any reports whether the form has content at all.
func (f Form) any() bool { return f.Raw || f.Typed }
