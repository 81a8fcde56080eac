package ingress

import (
	"fmt"
	"strings"
	"testing"
)

const someHash = "468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688"

func TestParseXFCC(t *testing.T) {
	e := func(uris []string, dns ...string) string { return fmt.Sprint(certElement{uris, dns}) }
	for _, tt := range []struct {
		name, value string
		want        []string // nil: an error
	}{
		{"as a proxy writes it", `By=http://frontend.lyft.com;Hash=` + someHash + `;Subject="/C=US/ST=CA/L=San Francisco/OU=Lyft/CN=Test Client";URI=http://testclient.lyft.com`,
			[]string{e([]string{"http://testclient.lyft.com"})}},
		{"two elements", `By=spiffe://a/p;URI=spiffe://a/x,By=spiffe://b/p;Hash=` + someHash + `;URI=spiffe://b/y`, []string{e([]string{"spiffe://a/x"}), e([]string{"spiffe://b/y"})}},
		{"no quotes where none are needed", `Subject=CN test;URI=spiffe://a/x;DNS=a.test;DNS=b.test`, []string{e([]string{"spiffe://a/x"}, "a.test", "b.test")}},
		{"a subject with everything in it", `Subject="O=a\"b,c;d=\\";URI=spiffe://a/x`, []string{e([]string{"spiffe://a/x"})}},
		{"an identity in a quoted subject", `Subject="CN=x;URI=spiffe://a/admin,URI=spiffe://a/root";URI=spiffe://a/x`, []string{e([]string{"spiffe://a/x"})}},
		{"names with nothing", `By=;URI=;DNS=`, []string{e(nil)}},
		{"several proxies' and several names", `By=a;By=b;URI=spiffe://a/x;URI=spiffe://a/y`, []string{e([]string{"spiffe://a/x", "spiffe://a/y"})}},
		{"keys in other letters", `uri=spiffe://a/x;dNS=a.test`, []string{e([]string{"spiffe://a/x"}, "a.test")}},
		{"a key that is not known", `Colour=green;URI=spiffe://a/x`, []string{e([]string{"spiffe://a/x"})}},
		{"a quoted name", `URI="spiffe://a/x"`, []string{e([]string{"spiffe://a/x"})}},
		{"a certificate", `Cert="-----BEGIN%20CERTIFICATE-----%0AMIIC%2F%3D%0A";URI=spiffe://a/x`, []string{e([]string{"spiffe://a/x"})}},

		{"nothing", ``, nil},
		{"an empty element", `URI=spiffe://a/x,`, nil},
		{"an empty element before", `,URI=spiffe://a/x`, nil},
		{"an empty pair", `URI=spiffe://a/x;`, nil},
		{"an empty pair between", `By=a;;URI=spiffe://a/x`, nil},
		{"no value", `URI`, nil},
		{"no key", `=spiffe://a/x`, nil},
		{"a space in a key", `By=a; URI=spiffe://a/x`, nil},
		{"a quote that is not closed", `Subject="CN=x;URI=spiffe://a/x`, nil},
		{"a quote that is closed by an escape", `Subject="CN=x\";URI=spiffe://a/x`, nil},
		{"an escape at the end", `Subject="CN=x\`, nil},
		{"another escape", `Subject="CN=\x";URI=spiffe://a/x`, nil},
		{"text behind a quote", `Subject="CN=x"y;URI=spiffe://a/x`, nil},
		{"a pair behind a quote", `Subject="CN=x"yURI=spiffe://a/x`, nil},
		{"two quotes", `Subject="CN=x""y";URI=spiffe://a/x`, nil},
		{"a quote inside", `URI=spiffe://a/"x"`, nil},
		{"an equals sign without quotes", `Subject=CN=x;URI=spiffe://a/x`, nil},
		{"two subjects", `Subject=a;Subject=b`, nil},
		{"two hashes", `Hash=` + someHash + `;hash=` + someHash, nil},
		{"a hash that is none", `Hash=468ed33b;URI=spiffe://a/x`, nil},
		{"a hash of nothing", `Hash=;URI=spiffe://a/x`, nil},
		{"a line feed", "URI=spiffe://a/x\r\nURI=spiffe://a/y", nil},
		{"a zero", "URI=spiffe://a/x\x00", nil},
		{"other letters", "URI=spiffe://a/ü", nil},
		{"too long", `URI=spiffe://a/` + strings.Repeat("x", 16<<10), nil},
		{"too many", strings.Repeat("By=a,", 16) + "By=a", nil},
	} {
		list, err := parseXFCC(tt.value)
		var got []string
		for _, one := range list {
			got = append(got, fmt.Sprint(one))
		}
		if (err == nil) != (tt.want != nil) || err == nil && fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "spiffe") {
			t.Errorf("%s: the value is quoted: %v", tt.name, err)
		}
	}
	if _, err := parseXFCC(strings.Repeat("By=a,", 15) + "By=a"); err != nil {
		t.Errorf("as many elements as may be: %v", err)
	}
}

// FuzzParseXFCC: no text upsets the parser, and what it reads is what a proxy would have written for it.
func FuzzParseXFCC(f *testing.F) {
	for _, s := range []string{
		``, `URI=spiffe://a/x`, `By=a;Hash=` + someHash + `;Subject="a\"b,c;d=\\";URI=spiffe://a/x;DNS=a.test,By=b;URI=`,
		`Subject="`, `Subject="\`, `URI="a"b`, `a=,b=`, `uri=a;uri=b`, `URI=\\`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, err := parseXFCC(value)
		if err != nil {
			if list != nil {
				t.Errorf("%q: both a result and %v", value, err)
			}
			return
		}
		if len(list) == 0 {
			t.Fatalf("%q: no element and no error", value)
		}
		again, err := parseXFCC(writeXFCC(list))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Errorf("%q is read as %v, and that as %v, %v", value, list, again, err)
		}
		for _, e := range list {
			for _, name := range append(e.uris, e.dns...) {
				unescaped := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(value)
				if !strings.Contains(value, name) && !strings.Contains(unescaped, name) {
					t.Errorf("%q: the name %q does not stand there", value, name)
				}
			}
		}
	})
}

// writeXFCC writes elements with all values in quotes.
func writeXFCC(list []certElement) string {
	var elements []string
	for _, e := range list {
		pairs := []string{"By=proxy"}
		for _, u := range e.uris {
			pairs = append(pairs, "URI="+quoteXFCC(u))
		}
		for _, d := range e.dns {
			pairs = append(pairs, "DNS="+quoteXFCC(d))
		}
		elements = append(elements, strings.Join(pairs, ";"))
	}
	return strings.Join(elements, ",")
}

func quoteXFCC(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
