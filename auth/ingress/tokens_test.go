package ingress_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/ingress"
)

// line is a line of a token file.
func line(name, token, attributes string) string {
	return strings.TrimSpace(fmt.Sprintf("%s sha256:%x %s", name, sha256.Sum256([]byte(token)), attributes)) + "\n"
}

func TestTokens(t *testing.T) {
	path := file(t, "# who may call\n\n"+line("ada", "ada-first-token", "team=looms team=engines sessions=wrun_1")+
		"\t"+line("ada", "ada-second-token", "")+line("ci/loom@prod", "token+of/ci==", "role=a=b")+"   # the end")
	var log logged
	a := newAuthenticator(t, ingress.Config{TokenFile: path, Logger: log.logger()})
	for _, tt := range []struct {
		name   string
		caller auth.Caller
		id     string // empty: refused
		attrs  map[string][]string
	}{
		{"a token", bearer("ada-first-token"), "ada", map[string][]string{"team": {"looms", "engines"}, "sessions": {"wrun_1"}}},
		{"the other one of the same name", bearer("ada-second-token"), "ada", map[string][]string{}},
		{"all that a token can be", bearer("token+of/ci=="), "ci/loom@prod", map[string][]string{"role": {"a=b"}}},
		{"in other letters", saying("bEARER ada-first-token"), "ada", map[string][]string{"team": {"looms", "engines"}, "sessions": {"wrun_1"}}},
		{"with spaces between", saying("Bearer   ada-second-token"), "ada", map[string][]string{}},
		{"nothing", saying(), "", nil},
		{"an empty entry", saying(""), "", nil},
		{"no token", saying("Bearer "), "", nil},
		{"no scheme", saying("ada-first-token"), "", nil},
		{"another scheme", saying("Basic ada-first-token"), "", nil},
		{"in other letters itself", bearer("ADA-first-token"), "", nil},
		{"with more", bearer("ada-first-tokenx"), "", nil},
		{"with less", bearer("ada-first-toke"), "", nil},
		{"with a space behind", bearer("ada-first-token "), "", nil},
		{"two in one entry", saying("Bearer ada-first-token, Bearer ada-second-token"), "", nil},
		{"two entries", saying("Bearer ada-first-token", "Bearer ada-first-token"), "", nil},
		{"a hash of the file", bearer(fmt.Sprintf("%x", sha256.Sum256([]byte("ada-first-token")))), "", nil},
		{"a name of the file", bearer("ada"), "", nil},
		{"a signed token where there are none", bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ."), "", nil},
	} {
		p, err := a.Authenticate(t.Context(), tt.caller)
		if tt.id == "" {
			refused(t, tt.name, p, err, auth.Unauthenticated, &log, "ada-first-token", "ada-second-token", "eyJhbGciOiJub25lIn0")
			continue
		}
		want := auth.Principal{ID: tt.id, Issuer: auth.IssuerTokens, Kind: auth.KindToken, Attributes: tt.attrs}
		if diff := cmp.Diff(want, p, cmp.Comparer(func(a, b auth.Secret) bool { return a.Equal(b) })); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

func TestParseTokens(t *testing.T) {
	good := line("ada", "sesame-token", "")
	for name, text := range map[string]string{
		"a token in the clear":        "ada sesame-token",
		"no hash":                     "ada",
		"another hash":                strings.Replace(good, "sha256", "md5", 1),
		"a short hash":                strings.TrimSpace(good)[:len(good)-4] + "\n",
		"a long hash":                 strings.TrimSpace(good) + "00",
		"no hexadecimal digits":       "ada sha256:" + strings.Repeat("zz", 32),
		"an attribute without value":  line("ada", "sesame-token", "sesame-token="),
		"an attribute without name":   line("ada", "sesame-token", "=sesame-token"),
		"no attribute":                line("ada", "sesame-token", "sesame-token"),
		"a name that is none":         line("-ada", "sesame-token", ""),
		"a name with control letters": line("a\x00da", "sesame-token", ""),
		"one token twice":             good + line("bob", "sesame-token", ""),
		"only the second is bad":      good + "\n# \nbob sesame-token",
	} {
		err := ingress.ParseTokens([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "line ") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "comments": "# a\n#b\n\n", "good": good, "upper case": strings.Replace(good, "ada", "ADA", 1), "with carriage returns": strings.ReplaceAll(good, "\n", "\r\n")} {
		if err := ingress.ParseTokens([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTokensReload: tokens come and go with the file, and a file that becomes bad lets nobody new in and nobody out.
func TestTokensReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t, line("ada", "token-of-ada", ""))
		var log logged
		a := newAuthenticator(t, ingress.Config{TokenFile: path, Logger: log.logger()})
		everyone := map[string]bool{"ada": false, "bob": false}
		for _, step := range []struct {
			name, text string
			in         map[string]bool
		}{
			{"as it was", line("ada", "token-of-ada", ""), map[string]bool{"ada": true}},
			{"one more", line("ada", "token-of-ada", "") + line("bob", "token-of-bob", ""), map[string]bool{"ada": true, "bob": true}},
			{"bad", line("bob", "token-of-bob", "") + "eve token-of-eve\n", map[string]bool{"ada": true, "bob": true}},
			{"still bad", "token-of-eve", map[string]bool{"ada": true, "bob": true}},
			{"repaired", line("bob", "token-of-bob", ""), map[string]bool{"bob": true}},
			{"the same name, another token", line("bob", "token-of-ada", ""), map[string]bool{"ada": true}},
			{"nobody", "", map[string]bool{}},
		} {
			write(t, path, step.text)
			time.Sleep(time.Second) // virtual
			want := maps.Clone(everyone)
			maps.Copy(want, step.in)
			for name, in := range want {
				_, err := a.Authenticate(t.Context(), bearer("token-of-"+name))
				if (err == nil) != in {
					t.Errorf("%s: %s: %v", step.name, name, err)
				}
			}
			if _, err := a.Authenticate(t.Context(), bearer("token-of-eve")); err == nil {
				t.Errorf("%s: eve is in", step.name)
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 || strings.Contains(log.String(), "token-of") {
			t.Errorf("logged:\n%s", log.String())
		}
	})
}
