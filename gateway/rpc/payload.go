package rpc

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readPayload reads the few members of a record's payload that decide where a read ends or a child is found. It is not
// the typed decoding of package translate: what has another type than it should is as good as missing and hides
// nothing else, so that a payload of which this build understands only an id still counts.
func readPayload[T any](data []byte) T {
	var to T
	// A payload that is no object, or none at all, has no members.
	_ = json.Unmarshal(data, &to, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return to
}

// text is a string member; empty when the value is none.
type text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*t = ""
	if dec.PeekKind() != '"' {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err == nil {
		*t = text(token.String())
	}
	return err
}

// object is a member that is an object; zero when the value is none.
type object[T any] struct{ members T }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *object[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var zero T
	o.members = zero // the last of duplicate names counts, alone
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, &o.members)
}

// objects is a member that is a list of objects; what is none among them is zero.
type objects[T any] []object[T]

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *objects[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = nil
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, (*[]object[T])(l))
}
