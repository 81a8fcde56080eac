package auth

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that cannot be printed: formatted with any verb, logged, or encoded as text or JSON, it shows only
// whether it is set. Reveal alone returns it. The zero value is no secret.
//
// The text lies behind a pointer: package fmt prints an unexported field of a struct without asking its methods, but
// follows no pointer there.
type Secret struct {
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s.text == nil }

// Equal compares two secrets in a time that depends on their lengths alone.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.IsZero() {
		return "[unset]"
	}
	return "[redacted]"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return "auth.Secret(" + s.String() + ")" }

// Format implements fmt.Formatter, for the verbs that ask neither String nor GoString.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText implements encoding.TextUnmarshaler: configurations read secrets like any text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
