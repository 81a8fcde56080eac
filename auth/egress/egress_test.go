package egress_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/egress"
	"github.com/evegateway/evegateway/gateway/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ source.HeaderSource = (*egress.Source)(nil)

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "value")
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(s string) egress.Value { return egress.Text(auth.NewSecret(s)) }

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = []string{pairs[i+1]}
	}
	return h
}

func TestHeaders(t *testing.T) {
	t.Setenv("EVE_TOKEN", " from-the-environment \n")
	t.Setenv("EVE_EMPTY", "")
	const basic = "Basic bG9vbTpzZXNhbWU=" // loom:sesame
	for _, tt := range []struct {
		name string
		cfg  egress.Config
		want http.Header
	}{
		{"nothing", egress.Config{}, header()},
		{"bearer", egress.Config{Bearer: text("sesame")}, header("Authorization", "Bearer sesame")},
		{"bearer of a file", egress.Config{Bearer: egress.File(file(t, "\tsesame\r\n"))}, header("Authorization", "Bearer sesame")},
		{"bearer of the environment", egress.Config{Bearer: egress.Env("EVE_TOKEN")}, header("Authorization", "Bearer from-the-environment")},
		{"empty text", egress.Config{Bearer: text("")}, header()},
		{"empty file", egress.Config{Bearer: egress.File(file(t, " \n\t\r\n"))}, header()},
		{"empty variable", egress.Config{Bearer: egress.Env("EVE_EMPTY")}, header()},

		{"basic", egress.Config{Basic: &egress.Basic{User: text("loom"), Password: text("sesame")}}, header("Authorization", basic)},
		{"basic of files", egress.Config{Basic: &egress.Basic{User: egress.File(file(t, "loom\n")), Password: egress.File(file(t, "sesame\r\n"))}},
			header("Authorization", basic)},
		{"basic without a password", egress.Config{Basic: &egress.Basic{User: text("loom")}}, header("Authorization", "Basic bG9vbTo=")},
		{"basic with spaces, colons and more letters", egress.Config{Basic: &egress.Basic{User: text("lö"), Password: text(" a:b ")}},
			header("Authorization", "Basic bMO2OiBhOmIg")},
		{"empty basic", egress.Config{Basic: &egress.Basic{User: egress.Env("EVE_EMPTY"), Password: egress.File(file(t, "\n"))}}, header()},

		{"Vercel OIDC", egress.Config{VercelOIDC: text("sesame")},
			header("Authorization", "Bearer sesame", "X-Vercel-Trusted-Oidc-Idp-Token", "sesame")},
		{"empty Vercel OIDC", egress.Config{VercelOIDC: egress.Env("EVE_EMPTY")}, header()},

		{"custom headers", egress.Config{Headers: []egress.Header{
			{Name: "x-vercel-protection-bypass", Value: egress.File(file(t, " by pass \n"))}, {Name: "X-Team", Value: text("looms")}, {Name: "x-empty", Value: egress.Env("EVE_EMPTY")},
		}}, header("X-Vercel-Protection-Bypass", "by pass", "X-Team", "looms")},
		{"a scheme of one's own", egress.Config{Headers: []egress.Header{{Name: "authorization", Value: text("Loom 1")}}}, header("Authorization", "Loom 1")},
		{"authentication wins over custom headers", egress.Config{VercelOIDC: text("sesame"), Headers: []egress.Header{
			{Name: "authorization", Value: text("Loom 1")}, {Name: "x-vercel-trusted-oidc-idp-token", Value: text("2")}, {Name: "x-team", Value: text("3")},
		}}, header("Authorization", "Bearer sesame", "X-Vercel-Trusted-Oidc-Idp-Token", "sesame", "X-Team", "3")},
		{"but not when it is empty", egress.Config{Bearer: egress.Env("EVE_EMPTY"), Headers: []egress.Header{{Name: "authorization", Value: text("Loom 1")}}},
			header("Authorization", "Loom 1")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := egress.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if s.PassesThrough() {
				t.Error("passes the caller's token through")
			}
			// A caller's token never goes along by itself, and nothing that one request does shows in the next.
			ctx := auth.WithPrincipal(t.Context(), caller("https://issuer.test", "agent"))
			for _, refresh := range []bool{false, true} {
				got, err := s.Headers(ctx, refresh)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("refresh %v (-want +got):\n%s", refresh, diff)
				}
				got.Set("Authorization", "other")
			}
		})
	}
}

// TestBadValues: a value that cannot be sent as it stands is refused at once, in words that do not quote it.
func TestBadValues(t *testing.T) {
	bearer := func(v egress.Value) egress.Config { return egress.Config{Bearer: v} }
	custom := func(v egress.Value) egress.Config {
		return egress.Config{Headers: []egress.Header{{Name: "x-team", Value: v}}}
	}
	user := func(v egress.Value) egress.Config {
		return egress.Config{Basic: &egress.Basic{User: v, Password: text("ok")}}
	}
	password := func(v egress.Value) egress.Config {
		return egress.Config{Basic: &egress.Basic{User: text("ok"), Password: v}}
	}
	vercel := func(v egress.Value) egress.Config { return egress.Config{VercelOIDC: v} }
	for _, tt := range []struct {
		name, text string
		bad        map[string]func(egress.Value) egress.Config
	}{
		{"a space inside", "sesame seed", map[string]func(egress.Value) egress.Config{"bearer": bearer, "vercel": vercel}},
		{"two lines", "sesame\nseed", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom, "user": user, "password": password}},
		{"a header of its own", "sesame\r\nX-Admin: 1", map[string]func(egress.Value) egress.Config{"bearer": bearer, "vercel": vercel, "custom": custom, "user": user}},
		{"a control character", "ses\x01ame", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom, "user": user, "password": password}},
		{"a delete character", "sesame\x7f", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom, "user": user, "password": password}},
		{"more letters than a header can have", "sésame", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom}},
		{"a byte order mark", "\ufeffsesame", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom}},
		{"no text", "\xff\xfesesame", map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom}},
		{"a colon in the user's name", "sesame:seed", map[string]func(egress.Value) egress.Config{"user": user}},
		{"no user", "", map[string]func(egress.Value) egress.Config{"user": user}},
		{"too large", strings.Repeat("sesame", 20_000), map[string]func(egress.Value) egress.Config{"bearer": bearer, "custom": custom, "password": password}},
	} {
		for kind, cfg := range tt.bad {
			path := file(t, tt.text)
			for place, v := range map[string]egress.Value{"file": egress.File(path), "configuration": text(tt.text)} {
				if tt.name == "too large" && place != "file" {
					continue
				}
				_, err := egress.New(cfg(v))
				if err == nil {
					t.Errorf("%s as %s in the %s: taken", tt.name, kind, place)
					continue
				}
				if strings.Contains(err.Error(), "ses") || strings.Contains(err.Error(), "seed") || strings.Contains(err.Error(), "Admin") {
					t.Errorf("%s as %s in the %s: the value is quoted: %v", tt.name, kind, place, err)
				}
				if place == "file" && kind != "user" && !strings.Contains(err.Error(), path) {
					t.Errorf("%s as %s: %v does not name the file", tt.name, kind, err)
				}
			}
		}
	}
	if _, err := egress.New(bearer(egress.File(filepath.Join(t.TempDir(), "none")))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that there is no file", err)
	}
	if _, err := egress.New(bearer(egress.File(t.TempDir()))); err == nil {
		t.Error("a directory: taken")
	}
	if _, err := egress.New(bearer(egress.Env("EVE_NEVER_SET"))); err == nil || !strings.Contains(err.Error(), "EVE_NEVER_SET is not set") {
		t.Errorf("a variable that is not set: %v", err)
	}
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	through := &egress.PassThrough{Audiences: []string{"agent"}, URL: "https://agent.test"}
	headers := func(names ...string) (list []egress.Header) {
		for _, n := range names {
			list = append(list, egress.Header{Name: n, Value: text("1")})
		}
		return list
	}
	bad := map[string]egress.Config{
		"bearer and basic":          {Bearer: text("1"), Basic: &egress.Basic{}},
		"bearer and Vercel":         {Bearer: text("1"), VercelOIDC: text("1")},
		"pass-through and a bearer": {Bearer: text("1"), PassThrough: through},
		"no audience":               {PassThrough: &egress.PassThrough{URL: "https://agent.test"}},
		"an empty audience":         {PassThrough: &egress.PassThrough{URL: "https://agent.test", Audiences: []string{""}}},
		"no https":                  {PassThrough: &egress.PassThrough{URL: "http://agent.test", Audiences: []string{"agent"}}},
		"no https on loopback":      {PassThrough: &egress.PassThrough{URL: "http://127.0.0.1:2000", Audiences: []string{"agent"}}},
		"no URL":                    {PassThrough: &egress.PassThrough{Audiences: []string{"agent"}}},
		"a header twice":            {Headers: headers("x-team", "X-Team")},
		"no name":                   {Headers: headers("")},
		"a space in a name":         {Headers: headers("x team")},
		"a line feed in a name":     {Headers: headers("x-team\r\nx")},
		"a pseudo header":           {Headers: headers(":authority")},
	}
	for _, name := range []string{
		"Accept", "accept-encoding", "Cache-Control", "connection", "Content-Encoding", "content-length", "content-type", "expect",
		"HOST", "keep-alive", "te", "trailer", "Transfer-Encoding", "upgrade", "proxy-authorization", "Proxy-Connection", "x-eve-anything",
	} {
		bad["header "+name] = egress.Config{Headers: headers(name)}
	}
	for name, cfg := range bad {
		if _, err := egress.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestRotation: every request reads everything anew, and what cannot be read stops requests until it can.
func TestRotation(t *testing.T) {
	path := file(t, "one\n")
	t.Setenv("EVE_TEAM", "looms")
	s, err := egress.New(egress.Config{Bearer: egress.File(path), Headers: []egress.Header{{Name: "x-team", Value: egress.Env("EVE_TEAM")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		rotate func()
		want   string // empty: an error
	}{
		{func() {}, "Bearer one looms"},
		{func() { write(t, path, "two") }, "Bearer two looms"},
		{func() { write(t, path, "t w o") }, ""},
		{func() { write(t, path, "three\n"); t.Setenv("EVE_TEAM", "engines") }, "Bearer three engines"},
		{func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{func() { // the way secrets are mounted: a new file takes the place of the old one
			write(t, path+".new", "four")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, "Bearer four engines"},
	} {
		step.rotate()
		h, err := s.Headers(t.Context(), false)
		got := strings.TrimSpace(h.Get("Authorization") + " " + h.Get("X-Team"))
		if got != step.want || (err != nil) != (step.want == "") {
			t.Errorf("%q, %v, want %q", got, err, step.want)
		}
	}
}

// caller is someone with a token of an issuer for audiences.
func caller(issuer string, audiences ...string) auth.Principal {
	return auth.Principal{ID: "ada", Issuer: issuer, Kind: auth.KindOIDC,
		Bearer: auth.Bearer{Token: auth.NewSecret("ada's.own.token"), Audiences: audiences}}
}

func TestPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := egress.New(egress.Config{PassThrough: &egress.PassThrough{Audiences: []string{"agent", "agents"}, URL: "https://agent.test"},
			Headers: []egress.Header{{Name: "x-team", Value: text("looms")}, {Name: "authorization", Value: text("Loom 1")}}})
		if err != nil {
			t.Fatal(err)
		}
		if !s.PassesThrough() {
			t.Error("does not say that it passes the caller's token through")
		}
		expiring := caller("i", "agent")
		expiring.ExpiresAt = time.Now().Add(time.Minute)
		static := auth.Principal{ID: "ada", Issuer: auth.IssuerTokens, Kind: auth.KindToken}
		for _, tt := range []struct {
			name   string
			caller *auth.Principal
			wait   time.Duration
			refuse auth.Reason // zero: passed through
		}{
			{"its audience", new(caller("i", "agent")), 0, 0},
			{"one of its audiences", new(caller("i", "gateway", "agents")), 0, 0},
			{"another audience", new(caller("i", "gateway")), 0, auth.Unauthenticated},
			{"no audience", new(caller("i")), 0, auth.Unauthenticated},
			{"no token that can be passed on", &static, 0, auth.Unauthenticated},
			{"anonymous", new(auth.Anonymous()), 0, auth.Unauthenticated},
			{"nobody", nil, 0, auth.Unauthenticated},
			{"still valid", &expiring, 59 * time.Second, 0},
			{"expired", &expiring, time.Second, auth.Expired},
		} {
			time.Sleep(tt.wait) // virtual
			ctx := t.Context()
			if tt.caller != nil {
				ctx = auth.WithPrincipal(ctx, *tt.caller)
			}
			h, err := s.Headers(ctx, false)
			if tt.refuse != 0 {
				if err == nil || auth.ReasonOf(err) != tt.refuse || h != nil || strings.Contains(err.Error(), "own.token") {
					t.Errorf("%s: %v, %v", tt.name, h, err)
				}
				continue
			}
			if diff := cmp.Diff(header("Authorization", "Bearer ada's.own.token", "X-Team", "looms"), h); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
			}
		}
	})
}

// TestNothingIsPrinted: a configuration that is dumped shows where secrets come from and none of them.
func TestNothingIsPrinted(t *testing.T) {
	t.Setenv("EVE_TOKEN", "sesame-env")
	cfg := egress.Config{Basic: &egress.Basic{User: text("sesame-user"), Password: egress.Env("EVE_TOKEN")},
		Headers: []egress.Header{{Name: "x-team", Value: text("sesame-header")}}}
	s, err := egress.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if out := fmt.Sprintf(verb+verb+verb, cfg, *cfg.Basic, s); strings.Contains(out, "sesame") {
			t.Errorf("%s prints %s", verb, out)
		}
	}
	if out := fmt.Sprint(cfg.Basic.Password, egress.File("/run/token"), text("x"), egress.Value{}); out != "environment variable EVE_TOKEN file /run/token the configuration nothing" {
		t.Errorf("places are named %s", out)
	}
}
