package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// The gist of a record is what a person looks for in it, in one line. It may hold anything the agent wrote: whoever
// shows it makes it printable and short.

func factGist(f *evev1.Fact) string {
	if f.GetOmitted() != nil {
		return omittedGist(f.GetOmitted())
	}
	if f.GetDecodeError() != "" {
		return "(not decoded: " + f.GetDecodeError() + ") " + dataOf(f.GetRecordJson())
	}
	switch d := f.GetData().(type) {
	case nil:
		return dataOf(f.GetRecordJson())
	case *evev1.Fact_DeliveryConsumed:
		return partsGist(d.DeliveryConsumed.GetParts())
	case *evev1.Fact_ContentCompleted:
		c := d.ContentCompleted
		if c.Text != nil {
			return words(c.GetKind(), c.GetPhase(), strconv.Quote(c.GetText()))
		}
		return words(c.GetKind(), c.GetPhase(), c.GetValueJson(), refGist(c.GetValueRef()))
	case *evev1.Fact_CallRequested:
		c := d.CallRequested
		return words(c.GetCallId(), c.GetCapability().GetName(), c.GetInputJson(), refGist(c.GetInputRef()), errorGist(c.GetInputError()))
	case *evev1.Fact_CallSettled:
		c := d.CallSettled
		return words(c.GetCallId(), enumName(c.GetOutcome()), c.GetOutputJson(), refGist(c.GetOutputRef()), errorGist(c.GetError()))
	case *evev1.Fact_TurnSettled:
		return words(d.TurnSettled.GetTurnId(), enumName(d.TurnSettled.GetOutcome()), errorGist(d.TurnSettled.GetError()))
	case *evev1.Fact_SessionEnded:
		return words(enumName(d.SessionEnded.GetOutcome()), errorGist(d.SessionEnded.GetError()))
	case *evev1.Fact_InteractionOpened:
		i := d.InteractionOpened
		return words(i.GetInteractionId(), i.GetRequest().GetKind(), strconv.Quote(i.GetRequest().GetPrompt()))
	}
	return payloadGist(f.ProtoReflect())
}

func progressGist(p *evev1.Progress) string {
	if p.GetOmitted() != nil {
		return omittedGist(p.GetOmitted())
	}
	if p.GetDecodeError() != "" {
		return "(not decoded: " + p.GetDecodeError() + ") " + dataOf(p.GetRecordJson())
	}
	switch d := p.GetData().(type) {
	case nil:
		return dataOf(p.GetRecordJson())
	case *evev1.Progress_ContentDelta:
		return strconv.Quote(d.ContentDelta.GetDelta())
	case *evev1.Progress_CallInput:
		return words(d.CallInput.GetCallId(), d.CallInput.GetName(), d.CallInput.GetDelta())
	case *evev1.Progress_CallProgress:
		return words(d.CallProgress.GetCallId(), d.CallProgress.GetTitle(), d.CallProgress.GetOutputJson())
	}
	return payloadGist(p.ProtoReflect())
}

func eventGist(e *evev1.LegacyEvent) string {
	if e.GetOmitted() != nil {
		return omittedGist(e.GetOmitted())
	}
	return dataOf(e.GetRecordJson())
}

func unreadableGist(u *evev1.UnreadableLine) string {
	reason := strings.ToLower(strings.TrimPrefix(u.GetReason().String(), "UNREADABLE_REASON_"))
	return fmt.Sprintf("%s, %d bytes: %s", strings.ReplaceAll(reason, "_", " "), u.GetSize(), words(u.GetDetail(), u.GetText()))
}

// checkpointGist is empty for a heartbeat.
func checkpointGist(c *evev1.Checkpoint) string {
	switch c.GetReason() {
	case evev1.CheckpointReason_CHECKPOINT_REASON_HEARTBEAT:
		return ""
	case evev1.CheckpointReason_CHECKPOINT_REASON_CAUGHT_UP:
		if c.CaughtUpLine == nil {
			return "caught up: the session has no line yet"
		}
		return fmt.Sprintf("caught up with line %d", c.GetCaughtUpLine())
	case evev1.CheckpointReason_CHECKPOINT_REASON_SOURCE_SKIPPED:
		s := c.GetSkipped()
		return fmt.Sprintf("the agent skipped %d.%d up to %d.0: gone", s.GetFromLine(), s.GetFromRecordIndex(), s.GetToLine())
	case evev1.CheckpointReason_CHECKPOINT_REASON_VERSION_CHANGED:
		return fmt.Sprintf("stream version %d from here on", c.GetStreamVersion())
	case evev1.CheckpointReason_CHECKPOINT_REASON_ENDED:
		switch c.GetEnd() {
		case evev1.EndReason_END_REASON_SESSION_ENDED:
			return "end: the session has ended"
		case evev1.EndReason_END_REASON_BOUND_REACHED:
			return "end: read as far as was asked for"
		case evev1.EndReason_END_REASON_STREAM_CLOSED:
			return "end: the agent has closed the stream without an end of the session"
		default:
			return "end"
		}
	default:
		return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(c.GetReason().String(), "CHECKPOINT_REASON_"), "_", " "))
	}
}

// factColour tells a person where to look.
func factColour(f *evev1.Fact) colour {
	switch d := f.GetData().(type) {
	case *evev1.Fact_TurnSettled:
		return outcomeColour(d.TurnSettled.GetOutcome() == evev1.TurnOutcome_TURN_OUTCOME_COMPLETED)
	case *evev1.Fact_CallSettled:
		return outcomeColour(d.CallSettled.GetOutcome() == evev1.CallOutcome_CALL_OUTCOME_COMPLETED)
	case *evev1.Fact_SessionEnded:
		return outcomeColour(d.SessionEnded.GetOutcome() == evev1.SessionOutcome_SESSION_OUTCOME_COMPLETED)
	case *evev1.Fact_InteractionOpened:
		return yellow
	case *evev1.Fact_ContentCompleted:
		return plain
	}
	return blue
}

func outcomeColour(good bool) colour {
	if good {
		return green
	}
	return red
}

func omittedGist(o *evev1.Omitted) string {
	return fmt.Sprintf("(left out: %d bytes)", o.GetSize())
}

func errorGist(e *evev1.EveError) string {
	if e == nil {
		return ""
	}
	return words(e.GetCode(), strconv.Quote(e.GetMessage()))
}

func refGist(r *evev1.ValueReference) string {
	if r == nil {
		return ""
	}
	return words("(by reference", r.GetMediaType(), strconv.FormatUint(r.GetSize(), 10), "bytes)")
}

func partsGist(parts []*evev1.UserPart) string {
	var said []string
	for _, p := range parts {
		if p.Text != nil {
			said = append(said, strconv.Quote(p.GetText()))
			continue
		}
		said = append(said, words(p.GetKind(), p.GetFilename(), p.GetMediaType()))
	}
	return strings.Join(said, " ")
}

// dataOf is the data member of a record, or all of what is not JSON to encoding/json.
func dataOf(record string) string {
	var r struct{ Data json.RawMessage }
	if json.Unmarshal([]byte(record), &r) != nil || r.Data == nil {
		return record
	}
	return string(r.Data)
}

// payloadGist shows a record's typed payload, whatever its type.
func payloadGist(record protoreflect.Message) string {
	field := record.WhichOneof(record.Descriptor().Oneofs().ByName("data"))
	if field == nil {
		return ""
	}
	return fieldsGist(record.Get(field).Message())
}

// fieldsGist lists the fields of a message that are set, in order.
func fieldsGist(m protoreflect.Message) string {
	var list []string
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); m.Has(f) {
			list = append(list, string(f.Name())+"="+valueGist(f, m.Get(f)))
		}
	}
	return strings.Join(list, " ")
}

func valueGist(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if f.IsList() && v.List().IsValid() {
		var list []string
		for i := range v.List().Len() {
			list = append(list, scalarGist(f, v.List().Get(i)))
		}
		return "[" + strings.Join(list, " ") + "]"
	}
	return scalarGist(f, v)
}

func scalarGist(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return "{" + fieldsGist(v.Message()) + "}"
	case protoreflect.EnumKind:
		return enumText(f.Enum(), v.Enum())
	case protoreflect.StringKind:
		if strings.Contains(v.String(), " ") && !strings.HasSuffix(string(f.Name()), "_json") {
			return strconv.Quote(v.String())
		}
	default:
	}
	return v.String()
}

// enumName is an enum's value as Eve writes it.
func enumName(e protoreflect.Enum) string { return enumText(e.Descriptor(), e.Number()) }

func enumText(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	value := e.Values().ByNumber(n)
	if value == nil {
		return strconv.Itoa(int(n))
	}
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(string(value.Name()), prefix), "_", "-"))
}

// words joins what there is.
func words(list ...string) string {
	var there []string
	for _, w := range list {
		if w != "" {
			there = append(there, w)
		}
	}
	return strings.Join(there, " ")
}
