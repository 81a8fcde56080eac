package auth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"github.com/evegateway/evegateway/auth"
)

const marked = "tr0ub4dor-secret"

// TestSecretIsNeverPrinted tries every way that a value gets into text by itself.
func TestSecretIsNeverPrinted(t *testing.T) {
	type config struct {
		Name   string
		Token  auth.Secret
		hidden auth.Secret // formatted without its methods
		List   []auth.Secret
		Map    map[string]auth.Secret
		Ptr    *auth.Secret
		Any    any
	}
	s := auth.NewSecret(marked)
	values := map[string]any{
		"itself": s, "pointer": &s, "slice": []auth.Secret{s}, "map": map[string]auth.Secret{"k": s}, "key": map[auth.Secret]int{s: 1},
		"struct": config{Name: "n", Token: s, hidden: s, List: []auth.Secret{s}, Map: map[string]auth.Secret{"k": s}, Ptr: &s, Any: s},
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s", "%T %v", "%p", "%e", "%U", "%c"} {
				texts = append(texts, fmt.Sprintf(verb, v, v))
			}
			texts = append(texts, fmt.Sprint(v), fmt.Sprintln(v), fmt.Errorf("failed with %v", v).Error(), errors.New(fmt.Sprint(v)).Error())
			for _, marshal := range []func(any) ([]byte, error){
				json.Marshal, func(v any) ([]byte, error) { return jsonv2.Marshal(v) }, yaml.Marshal,
			} {
				text, err := marshal(v)
				if err != nil && name != "key" {
					t.Errorf("encoding: %v", err)
				}
				texts = append(texts, string(text), fmt.Sprint(err))
			}
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
			slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
			texts = append(texts, log.String())
			hex := fmt.Sprintf("%x", marked)
			for _, text := range texts {
				if strings.Contains(text, marked) || strings.Contains(strings.ToLower(text), hex) || strings.Contains(text, marked[:3]) {
					t.Errorf("printed: %s", text)
				}
			}
			if name != "key" && !strings.Contains(log.String(), "[redacted]") {
				t.Errorf("the log does not say that there is something: %s", log.String())
			}
		})
	}
}

func TestSecret(t *testing.T) {
	var zero auth.Secret
	s := auth.NewSecret(marked)
	if s.Reveal() != marked || zero.Reveal() != "" || s.IsZero() || !zero.IsZero() || !auth.NewSecret("").IsZero() {
		t.Error("a secret is not what was wrapped")
	}
	if !s.Equal(auth.NewSecret(marked)) || s.Equal(zero) || s.Equal(auth.NewSecret(marked+"x")) || !zero.Equal(auth.NewSecret("")) {
		t.Error("equal secrets differ, or others do not")
	}
	if got := fmt.Sprint(zero, " ", s); got != "[unset] [redacted]" {
		t.Errorf("printed as %s", got)
	}
	var read struct{ Token auth.Secret }
	for name, decode := range map[string]func() error{
		"JSON": func() error { return json.Unmarshal([]byte(`{"Token":"`+marked+`"}`), &read) },
		"YAML": func() error { return yaml.Unmarshal([]byte("token: "+marked), &read) },
	} {
		read.Token = auth.Secret{}
		if err := decode(); err != nil || read.Token.Reveal() != marked {
			t.Errorf("%s: %v, read %d bytes", name, err, len(read.Token.Reveal()))
		}
	}
}
