package guarantee

import (
	"strings"

	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
	"github.com/evegateway/evegateway/internal/fakeeve"
)

// passes tells whether a filter lets one slot of a line through. Lines that cannot be read always come.
func passes(f *evev1.Filter, e fakeeve.Entry, slot int64) bool {
	if e.Kind == fakeeve.Unreadable {
		return true
	}
	if e.Kind == fakeeve.Skipped || slot >= int64(len(e.Records)) {
		return false
	}
	r := e.Records[slot]
	preview := r.Kind == fakeeve.Progress ||
		r.Kind == fakeeve.Event && (strings.HasSuffix(r.Type, ".appended") || r.Type == "action.partial")
	if preview && f.GetExcludeProgress() || matches(f.GetExcludeTypes(), r.Type) {
		return false
	}
	return len(f.GetIncludeTypes()) == 0 || matches(f.GetIncludeTypes(), r.Type)
}

// matches tells whether one of the patterns is the type, or a family that the type is of.
func matches(patterns []string, typ string) bool {
	for _, p := range patterns {
		if family, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(typ, family) || p == typ {
			return true
		}
	}
	return false
}
