package glob_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evegateway/evegateway/auth/internal/glob"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"a", "ab", false},
		{"*", "", true}, {"*", "a/b.c", true}, {"**", "", true},
		{"a*", "a", true}, {"a*", "abc", true}, {"a*", "ba", false},
		{"*a", "a", true}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*a", "aba", true}, {"a*b*a", "aa", false}, {"ab*bc", "abc", false},
		{"*ab*ab", "ab", false}, {"*ab*ab", "abab", true}, {"*a*a*", "a", false},
		{"spiffe://mesh.test/ns/*/sa/loom", "spiffe://mesh.test/ns/a/b/sa/loom", true},
		{"spiffe://mesh.test/*", "spiffe://mesh.test.evil/x", false},
		{"*.example.org", "example.org", false}, {"*.example.org", "a.b.example.org", true},
		{"a.c", "abc", false}, {"a?c", "abc", false}, {"[a]", "a", false}, {`\*`, "*", false},
	} {
		if got := glob.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q, %q: %v", tt.pattern, tt.name, got)
		}
	}
	if glob.Any(nil, "") || glob.Any([]string{"a", "b*"}, "c") || !glob.Any([]string{"a", "b*"}, "bc") {
		t.Error("one of several patterns")
	}
}

// TestMatchIsTheRegularExpression compares with the other way to say the same.
func TestMatchIsTheRegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("ab*")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 12, -1).Draw(t, "name")
		re := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		if got, want := glob.Match(pattern, name), re.MatchString(name); got != want {
			t.Fatalf("%q, %q: %v, want %v", pattern, name, got, want)
		}
	})
}
