package translate

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object. Its methods decode a member by name. A member that is missing, or null, reads as the zero
// value, whether or not the contract wants it; one of another type than wanted fails the whole payload.
type object struct {
	d       *decoder
	at      place
	raw     jsontext.Value
	members []member // in the order they were written
}

// find returns the member of that name as written, nil when there is none.
func (o *object) find(name string) jsontext.Value {
	for _, m := range slices.Backward(o.members) { // the last of duplicates
		if m.name == name {
			return m.raw
		}
	}
	return nil
}

// present is find without nulls.
func (o *object) present(name string) jsontext.Value {
	raw := o.find(name)
	if raw.Kind() == 'n' {
		return nil
	}
	return raw
}

// fail notes that something else than raw was wanted of a member.
func (o *object) fail(name, want, got string) {
	o.d.fail(&place{in: &o.at, name: name, index: notElement}, want, got)
}

// id returns the id of the record's own entity: the one thing that no payload may lack.
func (o *object) id(name string) string {
	raw := o.find(name)
	if raw.Kind() != '"' {
		o.fail(name, "a string", kindName(raw))
		return ""
	}
	id := unquote(raw)
	if id == "" {
		o.fail(name, "a string that is not empty", "an empty one")
	}
	return id
}

func (o *object) text(name string) string {
	raw := o.present(name)
	switch raw.Kind() {
	case jsontext.KindInvalid:
		return ""
	case '"':
		return unquote(raw)
	default:
		o.fail(name, "a string", kindName(raw))
		return ""
	}
}

// optionalText tells an empty string from none.
func (o *object) optionalText(name string) *string {
	if o.present(name) == nil {
		return nil
	}
	s := o.text(name)
	return &s
}

// texts returns the elements of an array of strings.
func (o *object) texts(name string) []string {
	elements := o.elements(name)
	if len(elements) == 0 {
		return nil
	}
	out := make([]string, 0, len(elements))
	for i, e := range elements {
		if e.raw.Kind() != '"' {
			o.d.fail(&place{in: &o.at, name: name, index: i}, "a string", kindName(e.raw))
			return nil
		}
		out = append(out, unquote(e.raw))
	}
	return out
}

func (o *object) flag(name string) bool {
	raw := o.present(name)
	switch raw.Kind() {
	case jsontext.KindInvalid, 'f':
		return false
	case 't':
		return true
	default:
		o.fail(name, "a boolean", kindName(raw))
		return false
	}
}

// optionalFlag tells false from none.
func (o *object) optionalFlag(name string) *bool {
	if o.present(name) == nil {
		return nil
	}
	b := o.flag(name)
	return &b
}

// integer returns an unsigned integer of the given size in bits, however it is spelled: 100, 100.0 and 1e2 are one.
func (o *object) integer(name string, bits int) uint64 {
	raw := o.present(name)
	switch raw.Kind() {
	case jsontext.KindInvalid:
		return 0
	case '0':
		n, ok := parseInteger(raw, bits)
		if !ok {
			o.fail(name, "an unsigned "+strconv.Itoa(bits)+"-bit integer", "another number")
		}
		return n
	default:
		o.fail(name, "a number", kindName(raw))
		return 0
	}
}

// optionalInteger tells 0 from none.
func (o *object) optionalInteger(name string) *uint64 {
	if o.present(name) == nil {
		return nil
	}
	n := o.integer(name, 64)
	return &n
}

func (o *object) optionalNumber(name string) *float64 {
	raw := o.present(name)
	switch raw.Kind() {
	case jsontext.KindInvalid:
		return nil
	case '0':
		n, err := strconv.ParseFloat(alias(raw), 64)
		if err != nil {
			o.fail(name, "a number", "one out of range")
		}
		return &n
	default:
		o.fail(name, "a number", kindName(raw))
		return nil
	}
}

// verbatim returns the JSON of a member as written: null, too, is a value there.
func (o *object) verbatim(name string) *string {
	raw := o.find(name)
	if raw == nil {
		return nil
	}
	s := alias(raw)
	return &s
}

// json returns the JSON of the object itself as written.
func (o *object) json() *string {
	s := alias(o.raw)
	return &s
}

// elements returns the elements of an array.
func (o *object) elements(name string) []member {
	raw := o.present(name)
	switch raw.Kind() {
	case jsontext.KindInvalid:
		return nil
	case '[':
		return o.d.collect(&place{in: &o.at, name: name, index: notElement}, raw)
	default:
		o.fail(name, "an array", kindName(raw))
		return nil
	}
}

// child decodes a member that is an object.
func child[T any](o *object, name string, read func(*object) *T) *T {
	raw := o.present(name)
	if raw == nil {
		return nil
	}
	c := object{d: o.d, at: place{in: &o.at, name: name, index: notElement}}
	if !c.open(raw) {
		return nil
	}
	return read(&c)
}

// children decodes a member that is an array of objects.
func children[T any](o *object, name string, read func(*object) *T) []*T {
	elements := o.elements(name)
	if len(elements) == 0 {
		return nil
	}
	out := make([]*T, 0, len(elements))
	for i, e := range elements {
		c := object{d: o.d, at: place{in: &o.at, name: name, index: i}}
		if !c.open(e.raw) {
			return nil
		}
		out = append(out, read(&c))
	}
	return out
}

// open reads the members of o from raw. It reports whether that is an object.
func (o *object) open(raw jsontext.Value) bool {
	if raw.Kind() != '{' {
		o.d.fail(&o.at, "an object", kindName(raw))
		return false
	}
	o.raw, o.members = raw, o.d.collect(&o.at, raw)
	return true
}

// unquote returns the text of a JSON string. Half a surrogate pair reads as U+FFFD.
func unquote(raw jsontext.Value) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return alias(raw[1 : len(raw)-1])
	}
	// The one error left for a string that was read before is that of the half pairs, which are replaced.
	text, _ := jsontext.AppendUnquote(nil, raw)
	return alias(text)
}

// parseInteger reads a JSON number that is an unsigned integer of the given size. Digits alone are read exactly; other
// spellings as JavaScript reads all numbers, as a float64.
func parseInteger(raw jsontext.Value, bits int) (uint64, bool) {
	s := alias(raw)
	if n, err := strconv.ParseUint(s, 10, bits); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f != math.Trunc(f) || f >= math.Ldexp(1, bits) {
		return 0, false
	}
	return uint64(f), true
}

// kindName names the type of a value for a message.
func kindName(raw jsontext.Value) string {
	switch raw.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "nothing"
	}
}
