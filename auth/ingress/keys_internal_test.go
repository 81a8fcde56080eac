package ingress

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestParseKeys: of a key set only what can verify signatures is taken, and the rest does no harm.
func TestParseKeys(t *testing.T) {
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small := &rsa.PublicKey{N: new(rsa.PublicKey).N, E: 65537}
	if small.N = big.N; small.N != nil { // half of a modulus is a modulus too, for a reader
		half := *big.N
		small.N = half.Rsh(&half, 1025)
		small.N.SetBit(small.N, 0, 1)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(k jose.JSONWebKey) string {
		out, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	set := `{"keys":[` + strings.Join([]string{
		text(jose.JSONWebKey{KeyID: "rsa", Key: &big.PublicKey}),
		text(jose.JSONWebKey{KeyID: "curve", Key: &curve.PublicKey, Use: "sig", Algorithm: "ES256"}),
		text(jose.JSONWebKey{KeyID: "edwards", Key: edwards}),
		text(jose.JSONWebKey{KeyID: "private", Key: curve}),
		text(jose.JSONWebKey{KeyID: "symmetric", Key: []byte("0123456789abcdef0123456789abcdef")}),
		text(jose.JSONWebKey{KeyID: "encryption", Key: &big.PublicKey, Use: "enc"}),
		text(jose.JSONWebKey{KeyID: "small", Key: small}),
		`{"kty":"OKP","crv":"X448","kid":"unknown curve","x":"AA"}`,
		`{"kty":"LATTICE","kid":"unknown kind"}`,
		`{"kty":"RSA","kid":"no modulus"}`,
		`{}`, `null`, `7`, `"x"`,
	}, ",") + `]}`
	keys, err := parseKeys([]byte(set))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.id)
	}
	if fmt.Sprint(ids) != "[rsa curve edwards]" {
		t.Errorf("taken: %v", ids)
	}
	for _, bad := range []string{"", "null", "{}", "[]", `{"keys":{}}`, `{"keys":null}`, `<html>`, `{"keys":[`} {
		if keys, err := parseKeys([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, keys)
		}
	}
	if keys, err := parseKeys([]byte(`{"keys":[]}`)); err != nil || len(keys) != 0 {
		t.Errorf("no keys at all: %v, %v", keys, err)
	}

	s := keySet{keys: keys}
	for _, tt := range []struct {
		id, alg string
		want    []string
	}{
		{"rsa", "RS256", []string{"rsa"}}, {"rsa", "PS512", []string{"rsa"}}, {"rsa", "ES256", nil}, {"rsa", "HS256", nil},
		{"curve", "ES256", []string{"curve"}}, {"curve", "ES384", nil}, {"curve", "RS256", nil},
		{"edwards", "EdDSA", []string{"edwards"}}, {"", "EdDSA", []string{"edwards"}}, {"", "RS256", []string{"rsa"}}, {"", "HS256", nil}, {"", "none", nil}, {"other", "RS256", nil},
	} {
		var got []string
		for _, k := range s.match(tt.id, tt.alg) {
			i := slices.IndexFunc(keys, func(p publicKey) bool { return fmt.Sprint(p.key) == fmt.Sprint(k) })
			got = append(got, keys[i].id)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("key %q of %s: %v, want %v", tt.id, tt.alg, got, tt.want)
		}
	}
}
