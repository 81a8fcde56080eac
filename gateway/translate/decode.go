package translate

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// decode hands the members of data, the payload of a record, to read, which fills m. It returns what is wrong with
// data, "" for nothing. A nil read stands for an unknown type: there is nothing to decode, and nothing wrong.
func decode[M any](data []byte, m M, read func(*object, M)) string {
	if read == nil {
		return ""
	}
	d := &decoder{members: make([]member, 0, 16)}
	data, _ = validBytes(data) // JavaScript parses what its TextDecoder made of the line
	d.root = object{d: d, at: place{name: "data", index: notElement}}
	if d.root.open(data) {
		read(&d.root, m)
	}
	return d.wrong
}

// decoder decodes the payload of one record.
//
// An object is read as a whole before any of its members is decoded: the last of duplicate names counts, as in
// JavaScript, and an earlier one has no effect, not even an error.
type decoder struct {
	json    jsontext.Decoder
	in      bytes.Buffer
	root    object
	members []member // of all objects and arrays read so far
	wrong   string   // the first thing that was
}

// member is one member of an object, or one element of an array.
type member struct {
	name string
	raw  jsontext.Value
}

// notElement is the index of a place that is no element of an array.
const notElement = -1

// place says where a value stands: in what, under which name, and at which index when it is an element of the array
// of that name.
type place struct {
	in    *place
	name  string
	index int
}

func (p *place) String() string {
	s := p.name
	if p.index != notElement {
		s += "[" + strconv.Itoa(p.index) + "]"
	}
	if p.in != nil {
		s = p.in.String() + "." + s
	}
	return s
}

// fail notes that something else than got was wanted at p. Of got it says the kind alone, never the content.
func (d *decoder) fail(p *place, want, got string) {
	if d.wrong == "" {
		d.wrong = p.String() + ": want " + want + ", got " + got
	}
}

// collect reads the members of an object, or the elements of an array, that stands at p.
func (d *decoder) collect(p *place, raw jsontext.Value) []member {
	d.in = *bytes.NewBuffer(raw)
	d.json.Reset(&d.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	next := func() jsontext.Value {
		v, err := d.json.ReadValue()
		if err != nil {
			return nil
		}
		end := int(d.json.InputOffset())
		return raw[end-len(v) : end : end] // outlives the decoder's next read
	}
	closing := jsontext.Kind('}')
	if raw.Kind() == '[' {
		closing = ']'
	}
	_, err := d.json.ReadToken() // the opening bracket
	from := len(d.members)
	for err == nil && d.json.PeekKind() != closing {
		var m member
		if closing == '}' {
			if name := next(); name != nil {
				m.name = unquote(name)
			}
		}
		if m.raw = next(); m.raw == nil { // never for data that a source has yielded
			d.fail(p, "JSON", "something else")
			return nil
		}
		d.members = append(d.members, m)
	}
	return d.members[from:len(d.members):len(d.members)]
}
