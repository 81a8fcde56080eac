package source

import "strings"

// mark is a short form of a line's identity: 36 bits of its digest. It only tells a few neighbouring lines apart.
type mark [6]byte

// trail is what is remembered of the lines consumed last: the identity of the last one and, up to version 26, marks of
// those before it, because a live stream of these versions can differ in order from the stored one (contract O4).
// Its text form is the cursor's anchor: the last identity, then, after a dot, the marks from the oldest on.
type trail struct {
	last    string // "" unknown
	earlier []mark // oldest first
}

// maxLate is how many places late an event may arrive and still be reconciled; contract O4 saw "a few", up to eight in
// its one recording. trailLen is how many lines must be remembered for that: the last maxLate to arrive are stored at
// most maxLate places before those.
const (
	maxLate  = 16
	trailLen = 2 * maxLate
)

// parseTrail reads an anchor. One that this build cannot judge, damaged or made by a scheme it does not know, is the
// identity of no line: what cannot be verified is refused, never waved through. No anchor asks for no verification.
func parseTrail(anchor string) trail {
	last, marks, _ := strings.Cut(anchor, ".")
	if !judgeable(last) {
		return trail{last: anchor}
	}
	t := trail{last: last}
	for ; len(marks) >= len(mark{}); marks = marks[len(mark{}):] {
		t.earlier = append(t.earlier, mark([]byte(marks[:len(mark{})])))
	}
	if n := len(t.earlier) - (trailLen - 1); n > 0 {
		t.earlier = t.earlier[n:]
	}
	return t
}

// judgeable says whether this build can judge an identity: it was made by the scheme in use.
func judgeable(identity string) bool {
	return len(identity) >= 2+len(mark{}) && identity[:1] == identityScheme
}

func markOf(identity string) (m mark) {
	if judgeable(identity) {
		copy(m[:], identity[2:])
	}
	return m
}

// add remembers one more line; an empty identity forgets everything. long keeps marks of earlier lines.
func (t *trail) add(identity string, long bool) {
	switch {
	case identity == "" || !long || t.last == "":
		t.earlier = t.earlier[:0]
	case len(t.earlier) == trailLen-1:
		t.earlier = append(t.earlier[:0], t.earlier[1:]...)
		t.earlier = append(t.earlier, markOf(t.last))
	default:
		t.earlier = append(t.earlier, markOf(t.last))
	}
	t.last = identity
}

// marks are all remembered lines, oldest first.
func (t *trail) marks() []mark {
	if t.last == "" {
		return nil
	}
	return append(append(make([]mark, 0, trailLen), t.earlier...), markOf(t.last))
}

// anchor is the text form.
func (t *trail) anchor() string {
	if len(t.earlier) == 0 {
		return t.last
	}
	out := make([]byte, 0, len(t.last)+1+len(t.earlier)*len(mark{}))
	out = append(append(out, t.last...), '.')
	for i := range t.earlier {
		out = append(out, t.earlier[i][:]...)
	}
	return string(out)
}
