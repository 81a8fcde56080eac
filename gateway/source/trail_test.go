package source

import (
	"fmt"
	"testing"

	"github.com/evegateway/evegateway/cursor"
)

// A cursor drops an anchor that is too long, and with it the verification: the longest trail must fit.
func TestTrailFitsACursor(t *testing.T) {
	var tr trail
	for i := range 2 * trailLen {
		d := digest{}
		d.add(fmt.Sprint(i))
		tr.add(d.sum("e"), true)
	}
	anchor := tr.anchor()
	if len(tr.marks()) != trailLen || len(anchor) > cursor.MaxAnchor {
		t.Errorf("an anchor of %d lines has %d bytes, the most a cursor keeps is %d", len(tr.marks()), len(anchor), cursor.MaxAnchor)
	}
	if again := parseTrail(anchor); again.anchor() != anchor {
		t.Errorf("read back, %q is %q", anchor, again.anchor())
	}
}
