package source

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Line identities (api.md section 2, "Verified"): a digest of what a line says, not of how it is spelled, and of
// nothing that depends on the types a build knows. The prefix names the scheme and what was digested, so that
// another build can tell whether it can compare:
//
//	1c  commit: at, number of slots, each slot's type
//	1p  progress: type, and delta text or output value
//	1e  event of 21..26: meta.id, else type, meta.at and the data value
//	1u  unreadable line: its bytes
//
// An identity of another scheme is that of no line here: a build must read a scheme before any build writes it.
const identityScheme = "1"

// digest length-prefixes every part, so that no two lists of parts run together.
type digest struct{ buf []byte }

func (d *digest) add(part string) {
	d.buf = binary.AppendUvarint(d.buf, uint64(len(part)))
	d.buf = append(d.buf, part...)
}

func (d *digest) sum(kind string) string {
	h := sha256.Sum256(d.buf)
	out := make([]byte, 0, 20)
	out = append(append(out, identityScheme...), kind...)
	return string(base64.RawURLEncoding.AppendEncode(out, h[:12]))
}

func (s *skimmer) commitIdentity(at string, records []Record) string {
	d := digest{s.digest[:0]}
	d.add(at)
	d.buf = binary.AppendUvarint(d.buf, uint64(len(records)))
	for i := range records {
		d.add(records[i].Type)
	}
	s.digest = d.buf
	return d.sum("c")
}

func (s *skimmer) progressIdentity(r *Record) string {
	var delta, output []byte
	if len(r.Data) > 0 && r.Data[0] == '{' {
		s.reset(r.Data)
		// The line was found to be valid JSON: nothing can fail here.
		_ = s.object(func(name []byte) error {
			var err error
			switch s.text(name) {
			case "delta":
				delta, err = s.value()
			case "output":
				output, err = s.value()
			default:
				err = s.dec.SkipValue()
			}
			return err
		})
	}
	d := digest{s.digest[:0]}
	d.add(r.Type)
	d.buf = s.appendMeaning(d.buf, delta)
	d.buf = s.appendMeaning(d.buf, output)
	s.digest = d.buf
	return d.sum("p")
}

func (s *skimmer) eventIdentity(r *Record) string {
	d := digest{s.digest[:0]}
	switch {
	case r.Meta != nil && r.Meta.ID != "":
		d.add(r.Meta.ID)
	default:
		d.add("")
		d.add(r.Type)
		if r.Meta != nil {
			d.add(r.Meta.AtText)
		}
		if r.Data != nil {
			d.buf = s.appendMeaning(d.buf, r.Data)
		}
	}
	s.digest = d.buf
	return d.sum("e")
}

func unreadableIdentity(body []byte) string {
	h := digest{buf: body}
	return h.sum("u")
}

// appendMeaning appends an encoding of a JSON value that is the same for all spellings of it: white space, escapes,
// number forms, order of names and overruled duplicates do not show. No encoding is the beginning of another one.
// value is valid JSON, or nil for none.
func (s *skimmer) appendMeaning(buf, value []byte) []byte {
	if value == nil {
		return append(buf, 0)
	}
	s.reset(value)
	return s.meaning(buf)
}

func (s *skimmer) meaning(buf []byte) []byte {
	switch kind := s.dec.PeekKind(); kind {
	case '{':
		// Of each member its digest: copying what is below level by level would be quadratic in the depth.
		members := map[string][sha256.Size]byte{}
		_ = s.object(func(name []byte) error { // the value is valid JSON
			key := strings.Clone(s.text(name))
			members[key] = sha256.Sum256(s.meaning(nil))
			return nil
		})
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		slices.Sort(names)
		buf = binary.AppendUvarint(append(buf, '{'), uint64(len(names)))
		for _, name := range names {
			buf = appendText(buf, name)
			member := members[name]
			buf = append(buf, member[:]...)
		}
		return buf
	case '[':
		_, _ = s.dec.ReadToken()
		buf = append(buf, '[')
		for s.dec.PeekKind() != ']' && s.dec.PeekKind() > 0 {
			buf = s.meaning(buf)
		}
		_, _ = s.dec.ReadToken()
		return append(buf, ']')
	case '"':
		v, _ := s.value()
		return appendText(append(buf, '"'), s.text(v))
	case '0':
		v, _ := s.value()
		// JavaScript's number: two spellings of one double are one value, and what is beyond a double is infinite.
		f, _ := strconv.ParseFloat(string(v), 64)
		if f == 0 {
			f = 0 // -0 is written as 0
		}
		return append(strconv.AppendFloat(buf, f, 'g', -1, 64), ';')
	default:
		v, err := s.value()
		if err != nil {
			return buf
		}
		return append(buf, v...)
	}
}

func appendText(buf []byte, text string) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	return append(buf, text...)
}
