package auth_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evegateway/evegateway/auth"
)

// tokenFile writes a token file.
func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBearerFile(t *testing.T) {
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for _, test := range []struct {
		name, text string
		want       http.Header // nil: no token
	}{
		{"a token", "sesame", bearer("sesame")},
		{"a line", "sesame\n", bearer("sesame")},
		{"white space around", " \t\r\n sesame \r\n\n", bearer("sesame")},
		{"all that is printable", "!~aZ09-._+/=:,", bearer("!~aZ09-._+/=:,")},
		{"empty", "", http.Header{}},
		{"nothing but white space", " \n\t\r\n", http.Header{}},
		{"a space inside", "open sesame", nil},
		{"two lines", "open\nsesame\n", nil},
		{"a header of its own", "sesame\r\nX-Admin: 1", nil},
		{"a control character", "ses\x00ame", nil},
		{"a delete character", "sesame\x7f", nil},
		{"no ASCII", "sésame", nil},
		{"a byte order mark", "\ufeffsesame", nil},
		{"no text", "\xff\xfesesame", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := tokenFile(t, test.text)
			b, err := auth.NewBearerFile(path)
			if test.want == nil {
				if err == nil {
					t.Fatal("the file was taken")
				}
				if rest, named := strings.CutSuffix(strings.ReplaceAll(err.Error(), path, "PATH"), "PATH holds something that is no token"); !named || strings.Contains(rest, "ame") {
					t.Errorf("the error must name the file and not its text: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, refresh := range []bool{false, true} {
				got, err := b.Headers(t.Context(), refresh)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("refresh %v (-want +got):\n%s", refresh, diff)
				}
			}
		})
	}
}

func TestBearerFileMissing(t *testing.T) {
	for name, path := range map[string]string{"missing": filepath.Join(t.TempDir(), "token"), "a directory": t.TempDir()} {
		if _, err := auth.NewBearerFile(path); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	_, err := auth.NewBearerFile(filepath.Join(t.TempDir(), "token"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that there is no file", err)
	}
}

// TestBearerFileRotation: every request reads the file anew, and one that cannot be read stops requests until it can.
func TestBearerFileRotation(t *testing.T) {
	path := tokenFile(t, "one\n")
	b, err := auth.NewBearerFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := func() (string, error) {
		h, err := b.Headers(t.Context(), false)
		return h.Get("Authorization"), err
	}
	for _, step := range []struct {
		rotate func()
		want   string // empty: an error
	}{
		{func() {}, "Bearer one"},
		{func() { rewrite(t, path, "two") }, "Bearer two"},
		{func() { rewrite(t, path, "t w o") }, ""},
		{func() { rewrite(t, path, "three\n") }, "Bearer three"},
		{func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{func() { // the way secrets are mounted: a new file takes the place of the old one
			rewrite(t, path+".new", "four")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, "Bearer four"},
	} {
		step.rotate()
		got, err := header()
		if got != step.want || (err != nil) != (step.want == "") {
			t.Errorf("%q, %v, want %q", got, err, step.want)
		}
	}
}

// TestBearerFileHeadersAreTheCallers: what one request does to its headers does not show in the next.
func TestBearerFileHeadersAreTheCallers(t *testing.T) {
	b, err := auth.NewBearerFile(tokenFile(t, "sesame"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := b.Headers(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	first.Set("Authorization", "other")
	second, err := b.Headers(t.Context(), false)
	if err != nil || second.Get("Authorization") != "Bearer sesame" {
		t.Errorf("%v, %v", second, err)
	}
}
