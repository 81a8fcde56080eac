package rpc

import (
	"regexp"
	"strings"

	"github.com/evegateway/evegateway/gateway/source"
	evev1 "github.com/evegateway/evegateway/gen/eve/v1"
)

// filter says which records a stream delivers. The zero filter delivers all.
type filter struct {
	include, exclude types
	noProgress       bool
}

// types is a set of type names and families.
type types struct {
	exact    map[string]bool
	families []string // with the dot: "turn."
}

const maxPatterns = 100

var typePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?$`)

func newFilter(f *evev1.Filter) (filter, error) {
	include, err := newTypes("filter.include_types", f.GetIncludeTypes())
	if err != nil {
		return filter{}, err
	}
	exclude, err := newTypes("filter.exclude_types", f.GetExcludeTypes())
	if err != nil {
		return filter{}, err
	}
	return filter{include: include, exclude: exclude, noProgress: f.GetExcludeProgress()}, nil
}

func newTypes(field string, patterns []string) (types, error) {
	if len(patterns) > maxPatterns {
		return types{}, invalid(field, "has %d entries, want at most %d", len(patterns), maxPatterns)
	}
	t := types{exact: map[string]bool{}}
	for _, p := range patterns {
		if len(p) > 128 || !typePattern.MatchString(p) {
			return types{}, invalid(field, "want a type such as turn.settled or a family such as turn.*")
		}
		if family, ok := strings.CutSuffix(p, "*"); ok {
			t.families = append(t.families, family)
		} else {
			t.exact[p] = true
		}
	}
	return t, nil
}

func (t *types) empty() bool { return len(t.exact) == 0 && len(t.families) == 0 }

func (t *types) has(name string) bool {
	if t.exact[name] {
		return true
	}
	for _, f := range t.families {
		if strings.HasPrefix(name, f) {
			return true
		}
	}
	return false
}

// passes says whether a record is delivered. Lines that cannot be read always are: they are never silent.
func (f *filter) passes(l *source.Line, slot int) bool {
	if l.Kind == source.Unreadable {
		return true
	}
	name := l.Records[slot].Type
	switch {
	case f.noProgress && isProgress(l.Kind, name), f.exclude.has(name):
		return false
	}
	return f.include.empty() || f.include.has(name)
}

// isProgress says whether a record is a preview of something that a later record says whole (contract 5.5).
func isProgress(k source.Kind, name string) bool {
	return k == source.Progress || k == source.Event && (strings.HasSuffix(name, ".appended") || name == "action.partial")
}

// lastPassing is the last slot of a line, from first on, that is delivered; -1 when none is.
func (f *filter) lastPassing(l *source.Line, first, slots int) int {
	for slot := slots - 1; slot >= first; slot-- {
		if f.passes(l, slot) {
			return slot
		}
	}
	return -1
}
