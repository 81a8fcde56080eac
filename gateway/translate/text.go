package translate

import (
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding/unicode"
)

// alias returns the bytes of a line as a string without copying them. That is sound because a line is immutable once
// its source has yielded it, and everything in it is part of one allocation that the string keeps alive.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) } //nolint:gosec // see above

// validBytes returns b when it is valid UTF-8, else a copy with U+FFFD in place of what is not.
//
// The replacement is that of JavaScript's TextDecoder, through which Eve's own readers see the same bytes: one U+FFFD
// for each maximal subpart of an ill-formed sequence (WHATWG Encoding), where Go's own conversions put one for each
// byte, or for each run.
func validBytes(b []byte) (valid []byte, lossy bool) {
	if utf8.Valid(b) {
		return b, false
	}
	valid, err := unicode.UTF8.NewDecoder().Bytes(b)
	if err != nil { // this decoder has none: whatever is ill-formed, it replaces
		panic("translate: replacing ill-formed UTF-8: " + err.Error())
	}
	return valid, true
}

// recordText returns the text of a record or line; lossy when it is not byte for byte what was written.
func recordText(b []byte) (text string, lossy bool) {
	b, lossy = validBytes(b)
	return alias(b), lossy
}

// validText makes a string fit for a protobuf field.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	text, _ := recordText([]byte(s))
	return text
}

// validTexts makes strings fit for a protobuf field; it returns the slice itself when all of them are.
func validTexts(in []string) []string {
	for i, s := range in {
		if utf8.ValidString(s) {
			continue
		}
		out := append(make([]string, 0, len(in)), in[:i]...)
		for _, s := range in[i:] {
			out = append(out, validText(s))
		}
		return out
	}
	return in
}
